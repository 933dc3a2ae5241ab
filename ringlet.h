// Everything that a program on top of Ringlet usually needs, in one include:
//
//   devices and memory, layers and the tape, data sets and pictures, replicas and training
//
// What makes a strategy, a kernel or a transport of one's own is in the rooms' other headers.
#pragma once

#include "base/data_error.h"              // how reading fails
#include "comm/communicator.h"            // what ranks do together
#include "comm/core/errors.h"             // how that fails
#include "data/field_dataset.h"           // float tensors of one's own
#include "data/idx_dataset.h"             // images and labels from files
#include "data/loader.h"                  // batches, ahead of time
#include "data/memory_dataset.h"          // images and labels of one's own
#include "data/open_dataset.h"            // data sets by name
#include "data/synthetic.h"               // drawn ones
#include "kernels/device.h"               // where tensors live and work is done
#include "kernels/host_copy.h"            // numbers to a device and back
#include "kernels/memory.h"               // tensors
#include "nn/layers/conv2d.h"             //
#include "nn/layers/linear.h"             //
#include "nn/layers/residual.h"           // a branch, and its sum with what it branched from
#include "nn/layers/sequential.h"         // layers one after the other
#include "nn/layers/stateless.h"          // activations, pooling, dropout
#include "nn/tape.h"                      // how gradients go back
#include "train/batches/batch_shares.h"   // a rank's share of each batch
#include "train/files/safetensors.h"      // weights in files
#include "train/learner.h"                // a replica for loops of one's own
#include "train/loop/predictor.h"         // a trained model's answers
#include "train/models.h"                 // models by name
#include "train/recipe/recipe_options.h"  // options by key, and one's own
#include "train/task/task.h"              // what a model is trained for
#include "train/trainer.h"                // replicas as threads, and the library's own loop
