// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export to ONNX (onnx.ai): a model as a graph of standard operators that other runtimes execute.
#include <cstdint>
#include <filesystem>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"

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
};

// Writes the model at the image size of its preprocessing.  Weights that the model keeps in int8
// (weights::Int8Weights::keep) are int8 in the file, each with its correction, and DequantizeLinear precedes the GEMM;
// all else is fp32, activations too: vitrail has a scale for each token, and integer GEMMs of other runtimes have one
// for a tensor.  Outputs: `features`, the input of the head, and
// `logits`.  A model without a head has only `features`; so has one whose head is the projection of an embedding, and
// they are projected.  Metadata of the file: `config.json` with preprocessing and labels, and for a processor of
// Hugging Face `preprocessor_config.json`.  Throws Error for a model with an operation that ONNX does not express
// (token merging), for options out of range, for Input::uint8 without mean and std, and if the file cannot be written.
void export_onnx(const models::VisionTransformer& model, const models::ModelConfig& config,
                 const std::filesystem::path& path, const OnnxOptions& options = {});

}  // namespace vitrail::onnx
