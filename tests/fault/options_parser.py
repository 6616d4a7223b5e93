"""How the harness reads options: each by its whole name, and what is wrong is said in one sentence."""

import argparse

from interruption import refuse


class OptionsParser(argparse.ArgumentParser):
    """Takes no abbreviation: --min is no --minutes."""

    def __init__(self, **settings):
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message):
        refuse(message)
