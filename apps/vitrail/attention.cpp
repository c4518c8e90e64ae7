// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

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

// The indices of the heads that --head selects.  Empty: the mean over all heads.
std::vector<int64_t> selected_heads(const Options& options, int64_t count) {
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
    // not a number: reported below
  }
  throw Error("--head", str("mean, all, or a head index from 0 to ", count - 1), "'" + options.head + "'");
}

// Writes the attention weights of all blocks, each [1, H, N, N], as one array [blocks, H, N, N].
void write_raw(const std::string& path, const std::vector<Tensor>& weights) {
  const Shape shape = weights[0].shape();
  NpyWriter file(path, DType::f32, std::span(shape.begin() + 1, 3), static_cast<int64_t>(weights.size()));
  for (const Tensor& block : weights) file.write_rows(block.data<float>(), 1);
  file.finish();
}

// The selected attention maps, each [grid height, grid width], of the attention weights of one or all blocks.
std::vector<Tensor> attention_maps(const Options& options, const LoadedModel& model, const std::vector<Tensor>& weights,
                                   std::array<int64_t, 2> grid) {
  const bool class_token = model.config.vit.class_token;
  const int64_t prefix = model.session->model().num_prefix_tokens();
  if (options.rollout) {
    std::vector<Tensor> blocks;
    for (const Tensor& block : weights) blocks.push_back(block.select(0, 0));
    return {analysis::patch_attention(analysis::attention_rollout(blocks), class_token, prefix, grid)};
  }
  const Tensor block = weights.back().select(0, 0);  // [H, N, N]
  std::vector<Tensor> maps;
  for (const int64_t head : selected_heads(options, block.size(0))) {
    maps.push_back(analysis::patch_attention(block.select(0, head), class_token, prefix, grid));
  }
  if (maps.empty()) {
    maps.push_back(analysis::patch_attention(analysis::mean_over_heads(block), class_token, prefix, grid));
  }
  return maps;
}

int visualise_attention(const Options& options, const GlobalOptions& global) {
  const LoadedModel model = load_model(options.model, global);
  const image::Image source = image::read_image(options.image, {.mode = model.mode, .apply_exif = options.exif});
  const Tensor input = image::apply(source, model.transform).unsqueeze(0);
  const bool all_layers = options.rollout || !options.raw.empty();
  std::vector<Tensor> weights =
      model.session->run(input, {.output = infer::Output::attention, .layer = options.layer, .all_layers = all_layers});
  if (!options.raw.empty()) write_raw(options.raw, weights);
  if (options.output.empty()) return 0;
  if (all_layers && !options.rollout) {
    const auto depth = static_cast<int64_t>(weights.size());
    const int64_t layer = options.layer < 0 ? options.layer + depth : options.layer;
    if (layer < 0 || layer >= depth)
      throw Error("--layer", str("a block index from 0 to ", depth - 1, " (or negative)"), str(options.layer));
    weights = {weights[static_cast<size_t>(layer)]};
  }
  const auto grid = model.session->model().grid_of(input.size(2), input.size(3));
  const image::Image model_input = image::apply_geometry(source, model.transform);
  std::vector<image::Image> overlays;
  for (const Tensor& map : attention_maps(options, model, weights, grid)) {
    overlays.push_back(image::overlay(
        model_input,
        {.values = {map.data<float>(), static_cast<size_t>(map.numel())}, .width = grid[1], .height = grid[0]}));
  }
  image::write_png(options.output, overlays.size() == 1 ? overlays[0] : image::grid(overlays));
  return 0;
}

}  // namespace

void add_attention(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("attention", "Visualise attention");
  command->footer("Example: vitrail attention -m MODEL photo.jpg -o attention.png --rollout");
  command->add_option("IMAGE", options->image, "Input image")->required();
  options->model.add_to(*command);
  CLI::Option* output =
      command->add_option("-o,--output", options->output, "FILE.png: the attention map over the model's input");
  command->add_option("--layer", options->layer, "Block index; negative counts from the end")->capture_default_str();
  command->add_option("--head", options->head, "Head index, mean, or all (one image per head)")->capture_default_str();
  command->add_flag("--rollout", options->rollout, "Attention rollout over all blocks");
  CLI::Option* raw =
      command->add_option("--raw", options->raw, "FILE.npy: all attention weights, float32 [layers, heads, N, N]");
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([=, &global, &run] {
    if (!output->empty() && options->output != "-" && std::filesystem::path(options->output).extension() != ".png")
      throw CLI::ValidationError("-o", "expected FILE.png, got " + options->output);
    if (options->output == "-") options->output = "/dev/stdout";
    if (output->empty() && raw->empty()) throw CLI::RequiredError("-o FILE.png or --raw FILE.npy");
    run = [options, &global] { return visualise_attention(*options, global); };
  });
}

}  // namespace vitrail::app
