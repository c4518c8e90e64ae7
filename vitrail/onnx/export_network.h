// SPDX-License-Identifier: Apache-2.0
#pragma once
// Export of any forward pass to ONNX.
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/nn/module.h"
#include "vitrail/onnx/export.h"

namespace vitrail::onnx {

struct ExportedNetwork {
  const nn::Module& module;  // names the weights
  std::function<std::vector<nn::NamedTensor>(const std::vector<nn::NamedTensor>&)> forward;
  std::vector<nn::NamedTensor> inputs;            // f32, on the meta device, [1, …]
  const models::Preprocessing* pixels = nullptr;  // how the input "images" is normalised; null: unknown
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

// Writes the graph in fp32 with the inputs and outputs of `forward`, at the inputs' sizes.  Input::uint8: "images" are
// pixels [N, H, W, C], which the graph normalises.  Throws Error for an operation that ONNX does not express, for
// options out of range, for Input::uint8 without mean and std, and if the file cannot be written.
void export_network_onnx(const ExportedNetwork& network, const std::filesystem::path& path,
                         const OnnxOptions& options = {});

}  // namespace vitrail::onnx
