from .predictions import Predictions, predict, read_predictions

__all__ = ["Predictions", "predict", "read_predictions"]
