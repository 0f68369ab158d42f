// The compiler takes declarations without a body only from packages with a file of assembly.
