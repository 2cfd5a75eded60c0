"""Train one LoRA policy as the designer and the player of its own environments."""
