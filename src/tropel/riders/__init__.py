"""Characters that move by laws of their own: what each can do is tried out once and stored as a mobility map."""
