// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network of a model that runs by its task, as commands for any model list it, measure it and write it.
#include <functional>
#include <string>

#include "vitrail/image/image_view.h"
#include "vitrail/infer/function_session.h"
#include "vitrail/models/preprocessing.h"
#include "vitrail/tasks/request_options.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::tasks {

// Refers to the model that gives it.
struct Network {
  const nn::Module& module;  // has its weights until the session has run
  // The same, for calibration, which writes to it; null: the model has no int8 files.
  nn::Module* calibrated = nullptr;
  // Named inputs → named outputs, all [B, …]: layer by layer while the module has its weights, or on the meta device.
  infer::Function forward;
  const infer::FunctionSession& session;  // the same, compiled; axes of outputs may have another order
  // The inputs of one image of nominal size, on the meta device; "images" is [1, C, H, W].
  infer::NamedTensors inputs;
  bool any_size = false;                          // H and W may be others
  bool unordered_queries = false;                 // outputs [B, Q, …] are sets of Q queries, in any order
  const models::Preprocessing* pixels = nullptr;  // how "images" is normalised
  std::function<infer::NamedTensors(const image::ImageView& photo)> inputs_of;
  Parameters options = {};  // those that its task needs
  // Its files, under the names of their source.
  weights::KeyMap key_map;
  std::string config_json, preprocessor_json;
};

}  // namespace vitrail::tasks
