// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "apps/vitrail/attention_figure.h"
#include "apps/vitrail/commands.h"
#include "apps/vitrail/output.h"
#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/error.h"
#include "vitrail/base/npy.h"
#include "vitrail/image/encode.h"

namespace vitrail::app {
namespace {

struct Options {
  ModelOptions model;
  std::string image, output, raw, labels, layer = "-1", head = "mean";
  std::vector<int64_t> query;  // x, y in pixels of the image; empty: the class token
  bool rollout = false, exif = false;
};

// The index that `text` is; none if it is no integer.
std::optional<int64_t> index_of(const std::string& text) {
  try {
    size_t used = 0;
    const int64_t index = std::stoll(text, &used);
    if (used == text.size()) return index;
  } catch (const std::logic_error&) {
    // not a number
  }
  return std::nullopt;
}

std::vector<int64_t> range(int64_t count) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(i);
  return result;
}

std::vector<int64_t> selected_layers(const Options& options, int64_t depth) {
  if (options.layer == "all") return range(depth);
  const std::optional<int64_t> index = index_of(options.layer);
  const int64_t layer = index && *index < 0 ? *index + depth : index.value_or(depth);
  if (layer >= 0 && layer < depth) return {layer};
  throw Error("--layer", str("all, or a block index from 0 to ", depth - 1, " (or negative, from the end)"),
              "'" + options.layer + "'");
}

// The indices of the heads that --head selects.  Empty: the mean over all heads.
std::vector<int64_t> selected_heads(const Options& options, int64_t count) {
  if (options.head == "mean") return {};
  if (options.head == "all") return range(count);
  if (const std::optional<int64_t> head = index_of(options.head); head && *head >= 0 && *head < count) return {*head};
  throw Error("--head", str("mean, all, or a head index from 0 to ", count - 1), "'" + options.head + "'");
}

// Writes the attention weights of all blocks, each [1, H, N, N], as one array [blocks, H, N, N].
void write_raw(const std::string& path, const std::vector<Tensor>& weights) {
  const Shape shape = weights[0].shape();
  NpyWriter file(path, DType::f32, std::span(shape.begin() + 1, 3), static_cast<int64_t>(weights.size()));
  for (const Tensor& block : weights) file.write_rows(block.data<float>(), 1);
  file.finish();
}

// What the maps are made from: whose attention (none: the mean over all tokens), and the layout of the tokens.
struct Tokens {
  std::optional<int64_t> query = {};
  int64_t prefix = 0, depth = 0;
  std::array<int64_t, 2> grid{};
};

// The attention weights [1, H, N, N] of all blocks, or of the selected one if nothing needs the others.
std::vector<Tensor> attention_weights(const Options& options, const Model& model, const Tensor& input) {
  const int64_t layer = selected_layers(options, model.config().vit.depth).front();
  const bool all = options.rollout || !options.raw.empty() || options.layer == "all";
  return model.session().run(input, {.output = infer::Output::attention, .layer = layer, .all_layers = all});
}

std::vector<AttentionMap> attention_maps(const Options& options, const std::vector<Tensor>& weights,
                                         const Tokens& tokens) {
  const auto map_of = [&](const Tensor& attention) {
    return analysis::patch_attention(attention, tokens.query, tokens.prefix, tokens.grid);
  };
  if (options.rollout) {
    std::vector<Tensor> blocks;
    for (const Tensor& block : weights) blocks.push_back(block.select(0, 0));
    return {{"rollout", map_of(analysis::attention_rollout(blocks))}};
  }
  std::vector<AttentionMap> maps;
  for (const int64_t layer : selected_layers(options, tokens.depth)) {
    const size_t at = weights.size() == 1 ? 0 : static_cast<size_t>(layer);
    const Tensor block = weights[at].select(0, 0);  // [H, N, N]
    const std::vector<int64_t> heads = selected_heads(options, block.size(0));
    for (const int64_t head : heads)
      maps.push_back({str("layer ", layer, " head ", head), map_of(block.select(0, head))});
    if (heads.empty()) maps.push_back({str("layer ", layer), map_of(analysis::mean_over_heads(block))});
  }
  return maps;
}

// "photo.jpg: tabby 87.3 %"
std::string prediction_line(const Options& options, const Model& model, const Tensor& input) {
  const std::string name = escaped(std::filesystem::path(options.image).filename().string());
  if (model.config().vit.num_classes == 0 || model.config().vit.projection_head) return name;
  const Tensor logits = model.session().logits(input);
  const std::span<const float> values(logits.data<float>(), static_cast<size_t>(logits.numel()));
  const Prediction best = model.predictions(values, 1, options.image).front();
  return fmt::format("{}: {} {:.1f} %", name, escaped(best.label), 100 * best.probability);
}

// "layer 11, mean over heads"
std::string shown_by(const Options& options, const std::vector<AttentionMap>& maps) {
  if (options.rollout) return "rollout over all layers";
  const std::string heads = options.head == "mean" ? "mean over heads" : "";
  if (maps.size() == 1) return maps.front().label + (heads.empty() ? "" : ", " + heads);
  return (heads.empty() ? "" : heads + ", ") + "each map with its own scale";
}

void write_figure(const Options& options, const Model& model, const image::Image& photo, const Tensor& input,
                  const std::vector<Tensor>& weights) {
  const models::VisionTransformer& vit = model.session().model();
  Tokens tokens{.prefix = vit.num_prefix_tokens(),
                .depth = model.config().vit.depth,
                .grid = vit.grid_of(input.size(2), input.size(3))};
  AttentionFigure figure{.photo = photo, .region = visible_region(model.transform(), photo.width, photo.height)};
  std::string query = "mean over all tokens";
  if (!options.query.empty()) {
    figure.query = model.patch_at({options.query[0], options.query[1]}, photo.width, photo.height);
    tokens.query = tokens.prefix + (*figure.query)[0] * tokens.grid[1] + (*figure.query)[1];
    query = str("the patch at ", options.query[0], ",", options.query[1]);
  } else if (model.config().vit.class_token) {
    tokens.query = 0;
    query = "the class token";
  }
  figure.maps = attention_maps(options, weights, tokens);
  if (options.layer == "all" && options.head == "all") figure.columns = weights.front().size(1);
  figure.caption = {prediction_line(options, model, input),
                    "attention of " + query + "; " + shown_by(options, figure.maps)};
  image::write_png(options.output, draw(figure));
}

int visualise_attention(const Options& options, const GlobalOptions& global) {
  const Model model = load_model(options.model, global, options.labels);
  const image::Image photo = model.read(options.image, {.apply_exif = options.exif});
  const Tensor input = image::apply(photo, model.transform()).unsqueeze(0);
  const std::vector<Tensor> weights = attention_weights(options, model, input);
  if (!options.raw.empty()) write_raw(options.raw, weights);
  if (!options.output.empty()) write_figure(options, model, photo, input, weights);
  return 0;
}

}  // namespace

void add_attention(CLI::App& program, const GlobalOptions& global, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("attention", "Visualise attention");
  command->footer("Example: vitrail attention -m MODEL photo.jpg -o attention.png --rollout");
  command->add_option("IMAGE", options->image, "Input image")->required();
  options->model.add_to(*command);
  CLI::Option* output = command->add_option("-o,--output", options->output,
                                            "FILE.png: the image beside its attention map, with scale and caption");
  command->add_option("--layer", options->layer, "Block index (negative: from the end), or all")->capture_default_str();
  command->add_option("--head", options->head, "Head index, mean, or all")->capture_default_str();
  CLI::Option* query = command
                           ->add_option("--query", options->query,
                                        "Attention of the patch at pixel X,Y of the image (default: the class token)")
                           ->delimiter(',')
                           ->allow_extra_args(false);
  command->add_option("--labels", options->labels, "Class names for the caption, as for classify");
  command->add_flag("--rollout", options->rollout, "Attention rollout over all blocks");
  CLI::Option* raw =
      command->add_option("--raw", options->raw, "FILE.npy: all attention weights, float32 [layers, heads, N, N]");
  command->add_flag("--exif", options->exif, "Apply the EXIF orientation");
  command->callback([=, &global, &run] {
    if (!output->empty() && options->output != "-" && std::filesystem::path(options->output).extension() != ".png")
      throw CLI::ValidationError("-o", "expected FILE.png, got " + options->output);
    if (!query->empty() && options->query.size() != 2) throw CLI::ValidationError("--query", "expected X,Y in pixels");
    if (options->output == "-") options->output = "/dev/stdout";
    if (output->empty() && raw->empty()) throw CLI::RequiredError("-o FILE.png or --raw FILE.npy");
    run = [options, &global] { return visualise_attention(*options, global); };
  });
}

}  // namespace vitrail::app
