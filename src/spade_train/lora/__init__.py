"""The policy's adapter: what it touches, how it reaches the sampling engine, how it leaves the run."""
