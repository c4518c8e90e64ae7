// SPDX-License-Identifier: Apache-2.0
// The depth of each pixel, as a map of the image's size and in colours.
#include <algorithm>
#include <optional>

#include "vitrail/base/callbacks.h"
#include "vitrail/image/encode.h"
#include "vitrail/image/overlay.h"
#include "vitrail/image/point_cloud.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/tasks/depth/depth_model.h"
#include "vitrail/tasks/images/tensor_json_internal.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

enum class DepthColors : uint8_t { heat, gray, gray16 };

struct DepthOptions {
  DepthColors colors = DepthColors::heat;
  bool common_scale = false, raw = false;
  double opacity = 1;
  std::optional<double> fov = {}, focal = {};
};

void describe_depth(Fields& fields, DepthOptions& options) {
  fields.choice(
      {"colors",
       "Rendered image: colours over the image, grey, or 16-bit grey, which is millimetres for a metric model"},
      options.colors, {{"heat", DepthColors::heat}, {"gray", DepthColors::gray}, {"gray16", DepthColors::gray16}});
  fields.boolean({"common_scale", "One colour scale for all images, from their smallest to their largest value"},
                 options.common_scale);
  fields.number({"opacity", "Weight of the colours over the image, 0 to 1"}, options.opacity, {0, 1});
  fields.number({"fov", "For a point cloud: horizontal field of view of the images in degrees"}, options.fov, {1, 179});
  fields.number({"focal", "For a point cloud: focal length of the images in pixels"}, options.focal, kAboveZero);
  fields.boolean({"raw", "Add all values to the JSON, row by row"}, options.raw);
}

struct DepthMap {
  Tensor values;  // [height, width]
  float min = 0, max = 0;
  float low = 0, high = 0;  // the ends of the colour scale
};

class Depth : public Request {
 public:
  Depth(const DepthModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), render_(setting.render), point_cloud_(!setting.files.empty()) {
    describe_depth(options, options_);
  }

  void check(int64_t /*images*/) const override {
    if (!point_cloud_) {
      if (options_.fov || options_.focal)
        throw Error(options_.fov ? "fov" : "focal", "a point cloud (ply), which it is for", "none");
      return;
    }
    if (!model_.depth_config().metric)
      throw Error("ply", "a metric model, whose depth is in metres", "a model of relative depth");
    if (options_.fov.has_value() == options_.focal.has_value()) {
      throw Error("ply", "either fov in degrees or focal in pixels, of the camera", options_.fov ? "both" : "neither");
    }
  }

  bool keeps_photo() const override { return point_cloud_ || (render_ && options_.colors == DepthColors::heat); }
  bool needs_all() const override { return options_.common_scale; }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    if (options_.raw) check_result_size(encoding->height, encoding->width);
    DepthMap map{model_.depth(*encoding, encoding->height, encoding->width)};
    require_finite("depth", map.values);
    const auto [min, max] = std::ranges::minmax(values_in(map));
    map.min = map.low = min;
    map.max = map.high = max;
    item.value = std::move(map);
  }

  void finish(const std::vector<Item*>& items) const override {
    if (!options_.common_scale || items.empty()) return;
    float low = of(*items.front()).min, high = of(*items.front()).max;
    for (const Item* item : items) {
      low = std::min(low, of(*item).min);
      high = std::max(high, of(*item).max);
    }
    for (Item* item : items) {
      auto& map = std::any_cast<DepthMap&>(item->value);
      map.low = low;
      map.high = high;
    }
  }

  std::string json(const Item& item) const override {
    const DepthMap& map = of(item);
    nlohmann::ordered_json object{{"path", item.name},
                                  {"shape", {map.values.size(0), map.values.size(1)}},
                                  {"min", map.min},
                                  {"max", map.max},
                                  {"unit", model_.depth_config().metric ? "m" : "relative"}};
    if (options_.raw) object["depth"] = values_of(map.values);
    return pipeline::json_line(object);
  }

  std::vector<Output> outputs() const override { return {{"depth", {}}}; }
  Tensor array(const Item& item, size_t /*output*/) const override { return of(item).values; }

  image::Image render(const Item& item) const override {
    const DepthMap& map = of(item);
    if (options_.colors != DepthColors::heat) return in_gray(map);
    return image::overlay(item.photo, {values_in(map), map.values.size(1), map.values.size(0)},
                          {.opacity = options_.opacity, .low = map.low, .high = map.high});
  }

  std::vector<uint8_t> render_png(const Item& item) const override {
    return options_.colors == DepthColors::gray16 ? image::encode_png(in_16_bits(item)) : Request::render_png(item);
  }

  // The only kind is a point cloud.
  std::vector<uint8_t> file(const Item& item, const std::string& /*kind*/) const override {
    const double focal = options_.focal ? *options_.focal : image::focal_length(*options_.fov, item.photo.width);
    return image::encode_ply(values_in(of(item)), item.photo, focal);
  }

 private:
  static const DepthMap& of(const Item& item) { return std::any_cast<const DepthMap&>(item.value); }
  static std::span<const float> values_in(const DepthMap& map) {
    return {map.values.data<float>(), static_cast<size_t>(map.values.numel())};
  }

  // The grey of transformers' pipeline is (d − low) / (high − low) · 255, cut to an integer.
  static image::Image in_gray(const DepthMap& map) {
    image::Image image = image::make_image(map.values.size(1), map.values.size(0), 1);
    const float range = map.high > map.low ? map.high - map.low : 1;
    std::ranges::transform(values_in(map), image.pixels.begin(),
                           [&](float value) { return static_cast<uint8_t>((value - map.low) / range * 255); });
    return image;
  }

  // Metric depth in millimetres; relative depth from 0 to the largest value.
  image::Gray16 in_16_bits(const Item& item) const {
    constexpr float kLargest = 65535;
    const DepthMap& map = of(item);
    const bool metric = model_.depth_config().metric;
    const float low = metric ? 0 : map.low, range = map.high > map.low ? map.high - map.low : 1;
    const float scale = metric ? 1000 : kLargest / range;
    if (metric && map.max * scale > kLargest)
      warn(str(item.name, ": depths above 65.535 m are 65535 in the 16-bit image; --arrays has all"));
    image::Gray16 image{map.values.size(1), map.values.size(0), {}};
    for (const float value : values_in(map))
      image.values.push_back(static_cast<uint16_t>(std::clamp((value - low) * scale + 0.5F, 0.0F, kLargest)));
    return image;
  }

  const DepthModel& model_;
  bool render_, point_cloud_;
  DepthOptions options_;
};

}  // namespace

Task depth_task() {
  return {.name = "depth",
          .model = "a depth estimator (Depth Anything, DPT)",
          .help = "Estimate the depth of each pixel",
          .describe = describe_defaults<DepthOptions, describe_depth>,
          .can_render = true,
          .files = {{"ply",
                     "Folder for NAME.ply of each image, a point cloud in metres of a metric model; needs --fov or "
                     "--focal",
                     "ply\n"}},
          .model_options = false,
          .fits = is_model<DepthModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<Depth>(as_model<DepthModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
