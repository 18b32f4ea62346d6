import logging, sys
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stdout)
from train.config import load_config
from train.run import run
run(load_config(sys.argv[1], sys.argv[2:]))
