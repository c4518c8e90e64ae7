// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attention_view.h"

#include <cstdio>
#include <filesystem>

#include "vitrail/analysis/attention_map.h"
#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"

namespace vitrail::pipeline {
namespace {

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

std::vector<int64_t> selected_layers(const AttentionOptions& options, int64_t depth) {
  if (options.layer == "all") return range(depth);
  const std::optional<int64_t> index = index_of(options.layer);
  const int64_t layer = index && *index < 0 ? *index + depth : index.value_or(depth);
  if (layer >= 0 && layer < depth) return {layer};
  throw Error("layer", str("all, or a block index from 0 to ", depth - 1, " (or negative, from the end)"),
              "'" + options.layer + "'");
}

// The indices of the selected heads.  Empty: the mean over all heads.
std::vector<int64_t> selected_heads(const AttentionOptions& options, int64_t count) {
  if (options.head == "mean") return {};
  if (options.head == "all") return range(count);
  if (const std::optional<int64_t> head = index_of(options.head); head && *head >= 0 && *head < count) return {*head};
  throw Error("head", str("mean, all, or a head index from 0 to ", count - 1), "'" + options.head + "'");
}

bool is_rollout(const AttentionOptions& options) { return options.rollout || options.method == "rollout"; }

// Fields that the method does not read have their defaults.
void check_method(const AttentionOptions& options) {
  const AttentionOptions defaults;
  const std::string got = "method " + options.method;
  const AttributionMethod* const method = attribution_method(options);
  const bool weights = !method;
  if (options.rollout && options.method != defaults.method && options.method != "rollout")
    throw Error("rollout", "no other method", got);
  if (options.method != defaults.method && options.layer != defaults.layer)
    throw Error("layer", "the method attention, which has layers", got);
  if (options.method != defaults.method && options.head != defaults.head)
    throw Error("head", "the method attention, which has heads", got);
  if (!weights && !options.query.empty())
    throw Error("query", "the method attention or rollout, where a patch attends", got);
  if (weights && !options.attribution.target.empty())
    throw Error("class", "a method that attributes the logit of a class, such as gradient_attention", got);
  if ((weights || !method->reads_baseline) && options.attribution.baseline != defaults.attribution.baseline)
    throw Error("baseline", "the method integrated_gradients or leave_one_out, which have one", got);
}

// What the maps are made from: whose attention (none: the mean over all tokens), and the layout of the tokens.
struct Tokens {
  std::optional<int64_t> query = {};
  int64_t prefix = 0, depth = 0;
  std::array<int64_t, 2> grid{};
};

std::vector<AttentionMap> maps_of(const AttentionOptions& options, const std::vector<Tensor>& weights,
                                  const Tokens& tokens) {
  const auto map_of = [&](const Tensor& attention) {
    return analysis::patch_attention(attention, tokens.query, tokens.prefix, tokens.grid);
  };
  if (is_rollout(options)) {
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
std::string prediction_line(const Model& model, const std::string& path, const Tensor& logits) {
  const std::string name = escape_unprintable(std::filesystem::path(path).filename().string());
  if (!logits.defined()) return name;
  const std::span<const float> values(logits.data<float>(), static_cast<size_t>(logits.numel()));
  const Prediction best = model.predictions(values, 1, path).front();
  char percent[32];
  std::snprintf(percent, sizeof percent, " %.1f %%", static_cast<double>(100 * best.probability));
  return name + ": " + escape_unprintable(best.label) + percent;
}

// "integrated_gradients of tabby; sum 5.3, difference of logits 5.31"
std::string attribution_line(const Model& model, const AttentionOptions& options, const Attribution& attribution) {
  std::string line = options.method + " of " + escape_unprintable(model.class_name(attribution.target));
  if (!attribution.completeness) return line;
  char text[80];
  std::snprintf(text, sizeof text, "; sum %.4g, difference of logits %.4g", attribution.completeness->sum,
                attribution.completeness->difference);
  return line + text;
}

// "layer 11, mean over heads"
std::string shown_by(const AttentionOptions& options, const std::vector<AttentionMap>& maps) {
  if (is_rollout(options)) return "rollout over all layers";
  const std::string heads = options.head == "mean" ? "mean over heads" : "";
  if (maps.size() == 1) return maps.front().label + (heads.empty() ? "" : ", " + heads);
  return (heads.empty() ? "" : heads + ", ") + "each map with its own scale";
}

}  // namespace

void describe_attention(Fields& fields, AttentionOptions& options) {
  fields.text({"layer", "Block index (negative: from the end), or all"}, options.layer);
  fields.text({"head", "Head index, mean, or all"}, options.head);
  fields.integers({"query", "Attention of the patch at pixel X,Y of the image (default: the class token)"},
                  options.query);
  fields.boolean({"rollout", "Attention rollout over all blocks and the mean of their heads"}, options.rollout);
  std::vector<std::string> methods{"attention", "rollout"};
  for (const AttributionMethod& method : attribution_methods()) methods.emplace_back(method.name);
  fields.choice({"method", "What the map shows: attention weights, or what a class's logit comes from"}, options.method,
                methods);
  describe_attribution(fields, options.attribution);
}

const AttributionMethod* attribution_method(const AttentionOptions& options) {
  return find_attribution(options.method);
}

void check_attention(const Model& model, const AttentionOptions& options) {
  check_method(options);
  if (attribution_method(options)) return check_attribution(model, options.attribution);
  selected_layers(options, model.config().vit.depth);
  selected_heads(options, model.config().vit.num_heads);
}

infer::Request attention_request(const Model& model, const AttentionOptions& options, bool all_blocks) {
  const int64_t layer = selected_layers(options, model.config().vit.depth).front();
  return {.output = infer::Output::attention,
          .layer = layer,
          .all_layers = is_rollout(options) || all_blocks || options.layer == "all"};
}

AttentionMaps attention_maps(const Model& model, const AttentionOptions& options, const AttendedImage& image) {
  const models::VisionTransformer& vit = model.session().model();
  Tokens tokens{.prefix = vit.num_prefix_tokens(),
                .depth = model.config().vit.depth,
                .grid = vit.grid_of(image.size[0], image.size[1])};
  if (image.attribution) return {.maps = {{options.method, image.attribution->map}}};
  AttentionMaps result{.attending = "mean over all tokens"};
  if (!options.query.empty()) {
    result.query = model.patch_at({options.query[0], options.query[1]}, image.width, image.height);
    tokens.query = tokens.prefix + (*result.query)[0] * tokens.grid[1] + (*result.query)[1];
    result.attending = str("the patch at ", options.query[0], ",", options.query[1]);
  } else if (model.config().vit.class_token) {
    tokens.query = 0;
    result.attending = "the class token";
  }
  result.maps = maps_of(options, image.weights, tokens);
  return result;
}

image::Image attention_figure(const Model& model, const AttentionOptions& options, const image::Image& photo,
                              const AttendedImage& image, const Tensor& logits) {
  AttentionMaps attention = attention_maps(model, options, image);
  AttentionFigure figure{.photo = photo, .region = visible_region(model.transform(), photo.width, photo.height)};
  figure.query = attention.query;
  figure.maps = std::move(attention.maps);
  if (options.layer == "all" && options.head == "all") figure.columns = image.weights.front().size(1);
  const std::string about = image.attribution
                                ? attribution_line(model, options, *image.attribution)
                                : "attention of " + attention.attending + "; " + shown_by(options, figure.maps);
  figure.caption = {prediction_line(model, image.name, logits), about};
  return draw(figure);
}

}  // namespace vitrail::pipeline
