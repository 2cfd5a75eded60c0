"""How the embedded nano policy was made: program grammar, tokenizer and warm start."""
