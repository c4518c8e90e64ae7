// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export to ONNX (onnx.ai): a model as a graph of standard operators that other runtimes execute.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/tensor/affine_quantization.h"

namespace vitrail::onnx {

// The input `images`.  float32: preprocessed images [N, C, H, W].  uint8: pixels [N, H, W, C]; the graph normalises
// them.
enum class Input : uint8_t { float32, uint8 };

struct OnnxOptions {
  static constexpr int kMinOpset = 17, kMaxOpset = 21;
  int opset = kMinOpset;
  Input input = Input::float32;
  bool dynamic_batch = false;  // N is any number; otherwise 1
  // Weights of more than this together are written to PATH.data; a file of ONNX is limited to 2 GiB.
  uint64_t inline_bytes = 1'900'000'000;
  // The quantisation of the inputs of an image model's linear layers, by layer ("blocks.0.attn.qkv"), as
  // quantize::activation_scales() chooses it.
  std::map<std::string, AffineQuantization> activations = {};
};

// Writes the model at the image size of its preprocessing.  Weights that the model keeps in int8
// (weights::Int8Weights::keep) are int8 in the file, each with its correction, and DequantizeLinear precedes the GEMM;
// all else is fp32.  Layers of OnnxOptions::activations have QuantizeLinear and DequantizeLinear before their input as
// well, which runtimes turn into an integer GEMM, and one int8 weight with a scale for each output channel: the model's
// own, or its floating weight, with the correction if it has one, rounded to nearest.
// Outputs: `features`, the input of the head, and `logits`.  A model without a head has only `features`; so has one
// whose head is the projection of an embedding, and they are projected.  Metadata of the file: `config.json` with
// preprocessing and labels, and for a processor of Hugging Face `preprocessor_config.json`.
// Throws Error for a model with an operation that ONNX does not express (token merging), for options out of range, for
// Input::uint8 without mean and std, for an entry of `activations` that is no linear layer of the model, for a weight
// to round that is not finite, and if the file cannot be written.
void export_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                 const std::filesystem::path& path, const OnnxOptions& options = {});

}  // namespace vitrail::onnx
