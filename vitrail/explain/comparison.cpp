// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/comparison_internal.h"

#include <numeric>

#include "vitrail/analysis/cka.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/explain/model_facts_internal.h"
#include "vitrail/models/flops.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMinPatches = 4, kMaxPatches = 600;  // the time of CKA grows with their square

bool is_comparable(int64_t patches) { return patches >= kMinPatches && patches <= kMaxPatches; }

// The patches [P, D] of the first image.
Tensor patches_of(const Tensor& tokens, int64_t prefix) {
  return tokens.select(0, 0).narrow(0, prefix, tokens.size(1) - prefix).to(DType::f32).contiguous();
}

std::vector<Tensor> patches_of_blocks(const Forward& forward, int64_t depth, int64_t prefix) {
  std::vector<Tensor> layers;
  for (int64_t block = 0; block < depth; ++block)
    layers.push_back(patches_of(forward.at(str("blocks.", block)), prefix));
  return layers;
}

std::vector<Tensor> patches_of_blocks(const models::VisionTransformer& model, const Tensor& input) {
  std::vector<int64_t> blocks(static_cast<size_t>(model.config().depth));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<Tensor> layers;
  for (const Tensor& tokens : model.intermediates(input, blocks, false))
    layers.push_back(patches_of(tokens, model.num_prefix_tokens()));
  return layers;
}

// CKA of the rows of one list with those of another [first, second].
Tensor similarities(std::vector<Tensor> first, const std::vector<Tensor>& second) {
  const auto rows = std::ssize(first), columns = std::ssize(second);
  first.insert(first.end(), second.begin(), second.end());
  analysis::LinearCka cka;
  cka.add(first);
  return cka.similarities().narrow(0, 0, rows).narrow(1, rows, columns).to(DType::f32).contiguous();
}

Json top_json(const Model& model, const image::ImageView& photo) {
  Json rows = Json::array();
  if (!is_classifier(model.config().vit)) return rows;
  for (const auto& [index, label, probability] : model.classify(photo, 5))
    rows.push_back(
        {{"class", index}, {"name", label}, {"probability", finite_or_text(static_cast<double>(probability))}});
  return rows;
}

}  // namespace

bool add_block_similarities(const models::VisionTransformer& model, const Forward& forward, Arrays& arrays) {
  const std::vector<Tensor> layers = patches_of_blocks(forward, model.config().depth, model.num_prefix_tokens());
  if (!is_comparable(layers.front().size(0))) return false;
  analysis::LinearCka cka;
  cka.add(layers);
  arrays.add("explain.cka", cka.similarities().to(DType::f32), Encoding::f32);
  return true;
}

Json add_comparison(const Model& first, const Forward& forward, const ComparedModel& second,
                    const image::ImageView& photo, Arrays& arrays) {
  const models::VisionTransformerConfig& vit = second.model.config().vit;
  const models::VisionTransformer other = models::build_model(second.opened);
  const Tensor input = second.model.preprocess({&photo, 1});
  const std::array<int64_t, 2> grid = other.grid_of(input.size(2), input.size(3));
  const Tensor attention = first.attention(photo);
  arrays.add("explain.compared.attention.first", attention, Encoding::f32);
  arrays.add("explain.compared.attention.second", second.model.attention(photo), Encoding::f32);
  const int64_t prefix = forward.at("embedded").size(1) - attention.numel();
  std::vector<Tensor> layers = patches_of_blocks(forward, first.config().vit.depth, prefix);
  if (is_comparable(grid[0] * grid[1]) && layers.front().size(0) == grid[0] * grid[1]) {
    const ComputeTeam team(second.model.session().threads());
    arrays.add("explain.compared.cka", similarities(std::move(layers), patches_of_blocks(other, input)), Encoding::f32);
  }
  return {{"name", second.name},
          {"architecture", second.model.config().architecture},
          {"parameters", other.num_parameters()},
          {"flops", models::forward_flops(other, input.shape())},
          {"depth", vit.depth},
          {"heads", vit.num_heads},
          {"width", vit.embed_dim},
          {"input", {input.size(2), input.size(3)}},
          {"grid", grid},
          {"top", top_json(second.model, photo)}};
}

}  // namespace vitrail::explain
