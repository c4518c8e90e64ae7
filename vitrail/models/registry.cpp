// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/registry.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::models {
namespace {

using Config = VisionTransformerConfig;

struct Size {
  const char* name;
  int64_t dim, depth, heads, hidden;
};
constexpr Size kTiny{"tiny", 192, 12, 3, 768}, kSmall{"small", 384, 12, 6, 1536}, kBase{"base", 768, 12, 12, 3072},
    kLarge{"large", 1024, 24, 16, 4096}, kHuge{"huge", 1280, 32, 16, 5120}, kGiant{"giant", 1408, 40, 16, 6144};

Config sized(const Size& size, int64_t patch, int64_t image) {
  Config config;
  config.img_size = {image, image};
  config.patch_size = {patch, patch};
  config.embed_dim = size.dim;
  config.depth = size.depth;
  config.num_heads = size.heads;
  config.mlp_ratio = static_cast<double>(size.hidden) / static_cast<double>(size.dim);
  return config;
}

// Google's ViTs with the patch and image sizes that timm registers.
void add_google(std::vector<Architecture>& table) {
  struct Row {
    Size size;
    int64_t patch, image;
  };
  const Row rows[] = {{kTiny, 16, 224},  {kTiny, 16, 384},  {kSmall, 32, 224}, {kSmall, 32, 384}, {kSmall, 16, 224},
                      {kSmall, 16, 384}, {kSmall, 8, 224},  {kBase, 32, 224},  {kBase, 32, 384},  {kBase, 16, 224},
                      {kBase, 16, 384},  {kBase, 8, 224},   {kLarge, 32, 224}, {kLarge, 32, 384}, {kLarge, 16, 224},
                      {kLarge, 16, 384}, {kLarge, 14, 224}, {kHuge, 14, 224},  {kGiant, 14, 224}};
  for (const Row& row : rows) {
    const std::string name =
        std::string("vit_") + row.size.name + "_patch" + std::to_string(row.patch) + "_" + std::to_string(row.image);
    table.push_back({name, "Dosovitskiy et al. 2021", sized(row.size, row.patch, row.image)});
  }
}

void add_deit(std::vector<Architecture>& table) {
  for (const Size& size : {kTiny, kSmall, kBase}) {
    for (const bool distilled : {false, true}) {
      for (const int64_t image : {224, 384}) {
        if (image == 384 && size.dim != kBase.dim) continue;
        Config config = sized(size, 16, image);
        config.dist_token = distilled;
        const std::string name =
            std::string("deit_") + size.name + (distilled ? "_distilled" : "") + "_patch16_" + std::to_string(image);
        table.push_back({name, "Touvron et al. 2021", config});
      }
    }
  }
}

void add_dinov2(std::vector<Architecture>& table) {
  constexpr Size kGiantDinov2{"giant", 1536, 40, 24, 6144};
  for (const Size& size : {kSmall, kBase, kLarge, kGiantDinov2}) {
    for (const bool registers : {false, true}) {
      Config config = sized(size, 14, 518);
      config.num_classes = 0;
      config.init_values = 1e-5;
      if (size.dim == kGiantDinov2.dim) config.mlp_layer = MlpLayer::swiglu;
      if (registers) {
        config.reg_tokens = 4;
        config.no_embed_class = true;
      }
      const std::string name = std::string("vit_") + size.name + "_patch14_" + (registers ? "reg4_" : "") + "dinov2";
      table.push_back({name, registers ? "Darcet et al. 2024" : "Oquab et al. 2024", config});
    }
  }
}

void add_deit3(std::vector<Architecture>& table) {
  constexpr Size kMedium{"medium", 512, 12, 8, 2048};
  struct Row {
    Size size;
    int64_t patch, image;
  };
  const Row rows[] = {{kSmall, 16, 224}, {kSmall, 16, 384}, {kMedium, 16, 224}, {kBase, 16, 224},
                      {kBase, 16, 384},  {kLarge, 16, 224}, {kLarge, 16, 384},  {kHuge, 14, 224}};
  for (const Row& row : rows) {
    Config config = sized(row.size, row.patch, row.image);
    config.no_embed_class = true;
    config.init_values = 1e-6;
    const std::string name = str("deit3_", row.size.name, "_patch", row.patch, "_", row.image);
    table.push_back({name, "Touvron et al. 2022", config});
  }
}

// CLIP's image towers as timm registers them; OpenAI's and some of DFN's and MetaCLIP's have the quick GELU.
void add_clip(std::vector<Architecture>& table) {
  constexpr Size kGiantClip{"giant", 1408, 40, 16, 6144}, kGiganticClip{"gigantic", 1664, 48, 16, 8192};
  constexpr Size kMedium{"medium", 512, 12, 8, 2048};
  struct Row {
    Size size;
    int64_t patch, image;
    bool quick_gelu;
  };
  const Row rows[] = {{kBase, 32, 224, true},    {kBase, 16, 224, true},       {kLarge, 14, 224, true},
                      {kLarge, 14, 336, true},   {kHuge, 14, 224, true},       {kHuge, 14, 378, true},
                      {kMedium, 32, 224, false}, {kMedium, 16, 224, false},    {kBase, 32, 224, false},
                      {kBase, 32, 256, false},   {kBase, 32, 384, false},      {kBase, 32, 448, false},
                      {kBase, 16, 224, false},   {kBase, 16, 384, false},      {kLarge, 14, 224, false},
                      {kLarge, 14, 336, false},  {kHuge, 14, 224, false},      {kHuge, 14, 336, false},
                      {kHuge, 14, 378, false},   {kGiantClip, 14, 224, false}, {kGiganticClip, 14, 224, false}};
  for (const Row& row : rows) {
    Config config = sized(row.size, row.patch, row.image);
    config.pre_norm = true;
    config.norm_eps = 1e-5;
    if (row.quick_gelu) config.act_layer = kernels::Activation::quick_gelu;
    const std::string name =
        str("vit_", row.size.name, "_patch", row.patch, "_clip_", row.quick_gelu ? "quickgelu_" : "", row.image);
    table.push_back({name, "Radford et al. 2021", config});
  }
}

// ViTs for CIFAR-10 and ViTs of PyTorch tutorials.
void add_tutorial_models(std::vector<Architecture>& table) {
  Config cifar = sized({"", 384, 12, 8, 1536}, 4, 32);
  cifar.num_classes = 10;
  cifar.qkv_bias = false;
  cifar.norm_eps = 1e-5;
  table.push_back({"cifar_vit_d384", "ViT for CIFAR-10, width 384", cifar});

  Config small = sized({"", 192, 9, 12, 384}, 4, 32);
  small.num_classes = 10;
  table.push_back({"cifar_vit_d192", "ViT for CIFAR-10, width 192", small});

  Config google = sized(kBase, 16, 224);
  google.weight_init = "xavier";
  google.pos_drop_rate = google.proj_drop_rate = 0.1;
  table.push_back({"google_vit_b16", "jeonsworld/ViT-pytorch", google});

  Config scratch = sized(kBase, 16, 224);
  scratch.weight_init = "torch";
  scratch.norm_eps = 1e-5;
  scratch.pos_drop_rate = scratch.proj_drop_rate = 0.1;
  // The notes that show this model (document 004, not public) pass mlp_size=patch_size, a slip: weights made by them
  // need mlp_hidden 16.
  table.push_back({"scratch_vit_b16", "ViT written from scratch in PyTorch", scratch});
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = [] {
    std::vector<Architecture> rows;
    add_google(rows);
    add_deit(rows);
    add_dinov2(rows);
    add_tutorial_models(rows);
    add_deit3(rows);
    add_clip(rows);
    return rows;
  }();
  return table;
}

const Architecture* find_architecture(const std::string& name) {
  for (const Architecture& row : architectures()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string> similar_architectures(const std::string& name) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const Architecture& row : architectures()) ranked.emplace_back(edit_distance(name, row.name), row.name);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < 3; ++i) names.push_back(ranked[i].second);
  return names;
}

}  // namespace vitrail::models
