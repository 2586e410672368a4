cuda: str = '13.0'
