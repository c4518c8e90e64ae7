// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "apps/vitrail/commands.h"
#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"
#include "vitrail/image/overlay.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string image, output, raw, head = "mean";
  int64_t layer = -1;
  bool rollout = false, exif = false;
};

// The heads to draw; empty means their mean.
std::vector<int64_t> heads_of(const Options& options, int64_t count) {
  if (options.head == "mean" || options.rollout) return {};
  std::vector<int64_t> heads;
  if (options.head == "all") {
    for (int64_t h = 0; h < count; ++h) heads.push_back(h);
    return heads;
  }
  try {
    size_t used = 0;
    const int64_t head = std::stoll(options.head, &used);
    if (used == options.head.size() && head >= 0 && head < count) return {head};
  } catch (const std::logic_error&) {
    // not a number: the error below says so
  }
  throw Error("--head", str("mean, all, or a head from 0 to ", count - 1), "'" + options.head + "'");
}

void write_raw(const std::string& path, const std::vector<Tensor>& maps) {
  const Shape one = maps[0].shape();  // [1, H, N, N]
  NpyWriter file(path, DType::f32, std::span(one.begin() + 1, 3), static_cast<int64_t>(maps.size()));
  for (const Tensor& map : maps) file.write_rows(map.data<float>(), 1);
  file.finish();
}

// The maps to be drawn, [grid height, grid width] each.
std::vector<Tensor> maps_to_draw(const Options& options, const ReadyModel& model, const std::vector<Tensor>& weights,
                                 std::array<int64_t, 2> grid) {
  const bool class_token = model.config.vit.class_token;
  const int64_t prefix = model.session->model().num_prefix_tokens();
  if (options.rollout) {
    std::vector<Tensor> blocks;
    for (const Tensor& map : weights) blocks.push_back(map.select(0, 0));
    return {analysis::patch_attention(analysis::attention_rollout(blocks), class_token, prefix, grid)};
  }
  const Tensor block = weights.back().select(0, 0);  // [H, N, N]
  std::vector<Tensor> maps;
  for (const int64_t head : heads_of(options, block.size(0))) {
    maps.push_back(analysis::patch_attention(block.select(0, head), class_token, prefix, grid));
  }
  if (maps.empty())
    maps.push_back(analysis::patch_attention(analysis::mean_over_heads(block), class_token, prefix, grid));
  return maps;
}

int draw_attention(const Options& options, const GlobalOptions& global) {
  const ReadyModel model = ready_model(options.model, global);
  const image::Image picture = image::read_image(options.image, {.mode = model.mode, .apply_exif = options.exif});
  const Tensor input = image::apply(picture, model.transform).unsqueeze(0);
  const bool all = options.rollout || !options.raw.empty();
  std::vector<Tensor> weights =
      model.session->run(input, {.output = infer::Output::attention, .layer = options.layer, .all_layers = all});
  if (!options.raw.empty()) write_raw(options.raw, weights);
  if (options.output.empty()) return 0;
  if (all && !options.rollout) {
    const auto depth = static_cast<int64_t>(weights.size());
    const int64_t layer = options.layer < 0 ? options.layer + depth : options.layer;
    if (layer < 0 || layer >= depth)
      throw Error("--layer", str("a block from 0 to ", depth - 1, " (or negative)"), str(options.layer));
    weights = {weights[static_cast<size_t>(layer)]};
  }
  const auto grid = model.session->model().grid_of(input.size(2), input.size(3));
  const image::Image seen = image::apply_geometry(picture, model.transform);
  std::vector<image::Image> overlays;
  for (const Tensor& map : maps_to_draw(options, model, weights, grid)) {
    overlays.push_back(image::overlay(
        seen, {.values = {map.data<float>(), static_cast<size_t>(map.numel())}, .width = grid[1], .height = grid[0]}));
  }
  image::write_png(options.output, overlays.size() == 1 ? overlays[0] : image::grid(overlays));
  return 0;
}

}  // namespace

void add_attention(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("attention", "Draw where a model looks");
  command->footer("Example: vitrail attention -m MODEL photo.jpg -o attention.png --rollout");
  command->add_option("IMAGE", options->image, "The image")->required();
  options->model.add_to(*command);
  CLI::Option* output = command->add_option("-o,--output", options->output,
                                            "FILE.png: the attention over the image as the model sees it");
  command->add_option("--layer", options->layer, "Block: from 0, negative from the end")->capture_default_str();
  command->add_option("--head", options->head, "A head's number, mean, or all (a picture each)")->capture_default_str();
  command->add_flag("--rollout", options->rollout, "Attention rollout through all blocks");
  CLI::Option* raw = command->add_option("--raw", options->raw, "FILE.npy: all weights, float32 [layers, heads, N, N]");
  command->add_flag("--exif", options->exif, "Turn the image as its EXIF orientation says");
  command->callback([=, &global, &run] {
    if (output->empty() && raw->empty()) throw CLI::RequiredError("-o FILE.png or --raw FILE.npy");
    run = [options, &global] { return draw_attention(*options, global); };
  });
}

}  // namespace vitrail::app
