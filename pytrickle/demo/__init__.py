"""A runnable demonstration: two loaders at different paces, and one report for each way of watermark gating.

Nothing is imported here: each process of a loader would load what draws, plans and refreshes.
"""
