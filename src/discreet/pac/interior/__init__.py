"""Interior points: the routines, how they split a budget, and which one to take."""
