"""Running code that a model wrote: static policy, guarded namespace, jailed worker processes."""
