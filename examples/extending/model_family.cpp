// SPDX-License-Identifier: Apache-2.0
// A family of checkpoints with its own tensor names and its own config.json: toy_family/.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "examples/show.h"
#include "vitrail/base/error.h"
#include "vitrail/models/load.h"
#include "vitrail/models/registry.h"
#include "vitrail/weights/safetensors.h"

namespace {

using namespace vitrail;
namespace fs = std::filesystem;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The row of the registry (vitrail/models/registry.cpp): what the variant is, from its paper.
models::Architecture registry_row() {
  models::VisionTransformerConfig config;
  config.img_size = {16, 16};
  config.patch_size = {8, 8};
  config.embed_dim = 24;
  config.depth = 2;
  config.num_heads = 3;
  config.mlp_hidden = 48;
  config.num_classes = 5;
  return {"toy_vit_d24", "docs/extending.md", config};
}

// The mapping of config.json (vitrail/models/huggingface_config.cpp): the family's fields to ours.
models::ModelConfig read_config(const std::string& text) {
  const auto file = nlohmann::json::parse(text);
  models::ModelConfig config;
  config.architecture = file.at("family");
  config.vit.img_size = {file.at("image"), file.at("image")};
  config.vit.patch_size = {file.at("patch"), file.at("patch")};
  config.vit.embed_dim = file.at("width");
  config.vit.depth = file.at("layers");
  config.vit.num_heads = file.at("heads");
  config.vit.mlp_hidden = file.at("hidden");
  config.vit.num_classes = file.at("classes");
  return config;
}

// A model's weights as the family's own training code would write them: kernels [in, out], and q, k and v apart.
NamedTensors foreign_tensors(const models::VisionTransformer& model) {
  NamedTensors tensors{{"cls", model.parameter("cls_token")},
                       {"positions", model.parameter("pos_embed")},
                       {"stem/kernel", model.parameter("patch_embed.proj.weight").permute({2, 3, 1, 0})},
                       {"stem/bias", model.parameter("patch_embed.proj.bias")},
                       {"optimizer/count", Tensor::zeros({1})}};
  const auto add_norm = [&](const std::string& name, const std::string& native) {
    tensors.emplace_back(name + "/scale", model.parameter(native + ".weight"));
    tensors.emplace_back(name + "/bias", model.parameter(native + ".bias"));
  };
  const auto add_linear = [&](const std::string& name, const Tensor& weight, const Tensor& bias) {
    tensors.emplace_back(name + "/kernel", weight.transpose(0, 1));
    tensors.emplace_back(name + "/bias", bias);
  };
  const int64_t dim = model.config().embed_dim;
  for (int64_t i = 0; i < model.config().depth; ++i) {
    const std::string layer = "layer_" + std::to_string(i) + "/", block = "blocks." + std::to_string(i) + ".";
    const auto native = [&](const std::string& name) { return model.parameter(block + name); };
    add_norm(layer + "norm_1", block + "norm1");
    add_norm(layer + "norm_2", block + "norm2");
    int64_t start = 0;
    for (const char* name : {"query", "key", "value"}) {
      add_linear(layer + name, native("attn.qkv.weight").narrow(0, start, dim),
                 native("attn.qkv.bias").narrow(0, start, dim));
      start += dim;
    }
    add_linear(layer + "out", native("attn.proj.weight"), native("attn.proj.bias"));
    add_linear(layer + "up", native("mlp.fc1.weight"), native("mlp.fc1.bias"));
    add_linear(layer + "down", native("mlp.fc2.weight"), native("mlp.fc2.bias"));
  }
  add_norm("final_norm", "norm");
  add_linear("classifier", model.parameter("head.weight"), model.parameter("head.bias"));
  return tensors;
}

}  // namespace

int main() {
  const models::Architecture row = registry_row();
  RandomParams random(1);
  const models::VisionTransformer original(row.config, ParamSource(random));
  const fs::path file = fs::temp_directory_path() / ("vitrail_toy_" + std::to_string(::getpid()) + ".safetensors");
  weights::write_safetensors(file, foreign_tensors(original));

  const fs::path folder = TOY_FAMILY_FOLDER;
  const auto checkpoint = std::make_shared<const weights::Checkpoint>(weights::Checkpoint::open(file));
  fs::remove(file);  // the mapping keeps its content
  const weights::KeyMap map = weights::KeyMap::parse(read_text(folder / "key_map.json"), "toy_family/key_map.json");
  show::check("the key map recognises the checkpoint", map.recognises(checkpoint->names()));
  const weights::KeyMatch match = map.match("layer_1/key/kernel");
  std::printf("layer_1/key/kernel is part %d of %s\n", int(match.rule->part), match.native.c_str());

  models::ModelConfig config = read_config(read_text(folder / "config.json"));
  const models::VisionTransformer loaded = models::build_model({config, checkpoint, map});
  const Tensor images = Tensor::randn({2, 3, 16, 16}, 2);
  const Tensor want = original.forward(images), got = loaded.forward(images);
  show::shape("logits", got, {2, 5});
  show::check("they are those of the original",
              std::equal(want.data<float>(), want.data<float>() + want.numel(), got.data<float>()));

  config.vit.depth = 3;  // a mistake: every missing tensor is reported
  try {
    models::build_model({config, checkpoint, map});
    show::check("a missing layer is an error", false);
  } catch (const Error& error) {
    const std::string message = error.what();
    show::check("a missing layer is an error that names its tensors",
                message.find("blocks.2.attn.qkv.weight") != std::string::npos);
  }
  return show::mismatches;
}
