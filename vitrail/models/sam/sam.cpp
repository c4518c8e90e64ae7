// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/sam.h"

#include "vitrail/models/load.h"
#include "vitrail/weights/checkpoint_params_internal.h"

namespace vitrail::models {
namespace {

// Native names are the official ones, so that other keys are reported as they are in the file.
weights::KeyMap key_map_of(const weights::Checkpoint& checkpoint) {
  const weights::KeyMap map = weights::KeyMap::builtin("huggingface_sam");
  if (map.recognises(checkpoint.names())) return map;
  return weights::KeyMap::builtin("sam");
}

std::map<std::string, Shape> shapes_of(const weights::Checkpoint& checkpoint, const weights::KeyMap& map) {
  std::map<std::string, Shape> shapes;
  for (const weights::TensorInfo& tensor : checkpoint.tensors()) {
    const weights::KeyMatch match = map.match(tensor.name);
    if (!match.dropped()) shapes.emplace(match.native, tensor.shape);
  }
  return shapes;
}

}  // namespace

Sam::Sam(const SamConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      image_encoder_(config.encoder, params.child("image_encoder")),
      prompt_encoder_(config, params.child("prompt_encoder")),
      mask_decoder_(config, params.child("mask_decoder")) {}

void Sam::visit(nn::Visitor& visitor) {
  visitor.child("image_encoder", static_cast<nn::Module&>(image_encoder_));
  visitor.child("prompt_encoder", static_cast<nn::Module&>(prompt_encoder_));
  visitor.child("mask_decoder", static_cast<nn::Module&>(mask_decoder_));
}

Sam load_sam(const std::filesystem::path& path) {
  const auto checkpoint = open_weights(path);
  checkpoint->strip_model_prefix();
  const weights::KeyMap map = key_map_of(*checkpoint);
  const SamConfig config = sam_config(shapes_of(*checkpoint, map), checkpoint->path());
  weights::CheckpointParams params(checkpoint, map);
  Sam sam(config, ParamSource(params));
  params.finish();
  return sam;
}

}  // namespace vitrail::models
