// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/configured_files.h"
#include "vitrail/tensor/param_source.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {

template <class Config>
weights::CheckpointParams params_of(const ConfiguredFiles<Config>& files) {
  return {files.checkpoint, files.key_map, {}, DType::f32, files.int8_weights};
}

// The model in eval mode.  Throws one Error that lists all missing, extra and misshapen keys.
template <class Net, class Config>
Net load_configured(const ConfiguredFiles<Config>& files) {
  weights::CheckpointParams params = params_of(files);
  Net model(files.config, ParamSource(params));
  params.finish();
  return model;
}

}  // namespace vitrail::models
