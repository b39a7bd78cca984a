"""What belongs to the paper alone: its studies, its printed figures, the authors' reading."""
