"""The fields of :class:`spade_train.config.SpadeConfig` by topic; nothing here knows a trainer."""
