"""What `keras-transformer doctor` looks at: packages, the machine, and the folder of a run or an export.

Nothing here imports TensorFlow or Keras, so that it is quick and works where they do not.
"""
