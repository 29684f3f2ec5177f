"""Server process: settings, wiring, logs, metrics, handover."""
