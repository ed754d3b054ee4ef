"""The live screen of `pytrickle top`: what is watched, what keys do, and how it looks."""
