// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calibrated int8 weights of a network of any outputs: maps, masks, boxes.
#include <map>
#include <string>
#include <vector>

#include "vitrail/infer/function_session.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::quantize {

// The inputs of the network for two sets of images.  The sensitivity of layers is measured on the second one.
struct CalibrationInputs {
  std::vector<infer::NamedTensors> calibration, validation;
};

struct Int8Network {
  std::vector<std::string> excluded;               // layers that lose too much: "backbone.blocks.0.mlp.fc2"
  std::map<std::string, QuantizedTensor> weights;  // those of all other layers of blocks
};

// The linear layers of a network that int8 files have in int8: those of the blocks of Vision Transformers.
std::vector<std::string> int8_layers(const nn::Module& network);

// Smooths the activations of the network's Vision Transformers (smoothing.h), rounds their weights with GPTQ and
// chooses the layers that int8 excludes (sensitivity.h; the error is that of all outputs together).  What differs from
// a classifier: any layer may read the tokens, so there is no weight correction, and H = Xᵀ X of all tokens.  GPTQ has
// no output Hessian, because a map has as many directions as values.  Blocks of another kind (Segment Anything's
// encoder) are rounded to nearest.
//
// unordered_queries: outputs [B, Q, …] are sets of queries, as of a detector whose proposals decide their order.  The
// error then compares each column in ascending order, so that queries that change places are no error.
//
// forward: computes with `network` layer by layer.  Afterwards the network has the parameters of the smoothed model,
// not rounded; the layers that are excluded take their weights from there.
Int8Network calibrate_network(nn::Module& network, const infer::Function& forward, const CalibrationInputs& inputs,
                              double tolerance, bool unordered_queries = false);

}  // namespace vitrail::quantize
