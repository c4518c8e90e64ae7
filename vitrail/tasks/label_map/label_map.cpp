// SPDX-License-Identifier: Apache-2.0
// The segments of an image with their classes, as JSON, label map, colours and COCO's panoptic PNG.
#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/base/text.h"
#include "vitrail/image/draw.h"
#include "vitrail/image/encode.h"
#include "vitrail/image/text.h"
#include "vitrail/pipeline/prediction_json_internal.h"
#include "vitrail/sam/segment_masks_internal.h"
#include "vitrail/tasks/label_map/label_map_model.h"
#include "vitrail/tasks/table_internal.h"

namespace vitrail::tasks {
namespace {

enum class LabelColors : uint8_t { overlay, labels, panoptic };

struct LabelMapOptions {
  std::string task;  // empty: the model's first one
  LabelColors colors = LabelColors::overlay;
  double opacity = 0.5;
  bool legend = false, rle = false;
  std::optional<double> score_threshold, overlap_threshold;
};

void describe_label_map(Fields& fields, LabelMapOptions& options) {
  fields.choice({"task", "What segments are: classes, objects, or both (default: what the model is for)"}, options.task,
                {"semantic", "instance", "panoptic"});
  fields.choice(
      {"colors",
       "Rendered image: colours over the image, labels (grey, class indices), or panoptic (COCO's, id = R + "
       "256 G + 65536 B)"},
      options.colors,
      {{"overlay", LabelColors::overlay}, {"labels", LabelColors::labels}, {"panoptic", LabelColors::panoptic}});
  fields.number({"opacity", "Opacity of the overlay's colours"}, options.opacity, {0, 1});
  fields.boolean({"legend", "The names of the classes below the overlay"}, options.legend);
  fields.number({"score_threshold", "In instance and panoptic maps, the least score of a segment (default: 0.8)"},
                options.score_threshold, {0, 1});
  fields.number({"overlap_threshold",
                 "In panoptic maps, the share of its mask that a segment must win from the others (default: 0.8)"},
                options.overlap_threshold, {0, 1});
  fields.boolean({"rle", "Add the mask of each segment to the JSON, in COCO's run-length encoding"}, options.rle);
}

// What the result of an image has of a segment.
struct Extent {
  int64_t area = 0, left = INT64_MAX, top = INT64_MAX, right = -1, bottom = -1;
};

std::vector<Extent> extents_of(const LabelMap& map) {
  const int32_t last = map.segments.empty() ? 0 : map.segments.back().id;
  std::vector<Extent> extents(static_cast<size_t>(last) + 1);
  for (int64_t y = 0; y < map.height; ++y) {
    for (int64_t x = 0; x < map.width; ++x) {
      Extent& extent = extents[static_cast<size_t>(map.ids[static_cast<size_t>(y * map.width + x)])];
      ++extent.area;
      extent.left = std::min(extent.left, x);
      extent.right = std::max(extent.right, x);
      extent.top = std::min(extent.top, y);
      extent.bottom = y;
    }
  }
  return extents;
}

sam::Rle rle_of(const LabelMap& map, int32_t id) {
  sam::BinaryMask mask = sam::make_mask(map.width, map.height);
  std::ranges::transform(map.ids, mask.pixels.begin(), [id](int32_t each) { return each == id ? 1 : 0; });
  return sam::encode(mask);
}

class LabelMapRequest : public Request {
 public:
  LabelMapRequest(const LabelMapModel& model, RequestOptions& options, const Setting& setting)
      : model_(model), names_(model.class_names()), render_(setting.render) {
    describe_label_map(options, options_);
    const std::vector<LabelMapTask> known = model.label_map_tasks();
    const auto wanted = std::ranges::find(known, options_.task, name_of);
    if (!options_.task.empty() && wanted == known.end())
      throw Error("task", join(known, " or ", name_of) + ", which the model can do", options_.task);
    task_ = options_.task.empty() ? known.front() : *wanted;
    if (options_.score_threshold && task_ == LabelMapTask::semantic)
      throw Error("score-threshold", "an instance or panoptic map", "a semantic one");
    if (options_.overlap_threshold && task_ != LabelMapTask::panoptic)
      throw Error("overlap-threshold", "a panoptic map", str("a map that is ", name_of(task_)));
    thresholds_.score = options_.score_threshold.value_or(thresholds_.score);
    thresholds_.overlap = options_.overlap_threshold.value_or(thresholds_.overlap);
  }

  bool keeps_photo() const override { return render_ && options_.colors == LabelColors::overlay; }

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    item.value = model_.label_map(*encoding, task_, encoding->height, encoding->width, thresholds_);
  }

  std::string json(const Item& item) const override {
    const LabelMap& map = of(item);
    const std::vector<Extent> extents = extents_of(map);
    nlohmann::ordered_json object{{"path", item.name},
                                  {"shape", {map.height, map.width}},
                                  {"task", name_of(task_)},
                                  {"segments", nlohmann::ordered_json::array()}};
    for (const LabelSegment& segment : map.segments) {
      const Extent& extent = extents[static_cast<size_t>(segment.id)];
      nlohmann::ordered_json row{{"id", segment.id}, {"index", segment.index}, {"label", name(segment)}};
      if (segment.score) row["score"] = *segment.score;
      row["area"] = extent.area;
      row["bbox"] = {extent.left, extent.top, extent.right - extent.left + 1, extent.bottom - extent.top + 1};
      row["color"] = image::voc_color(segment.id);
      if (options_.rle) row["rle"] = sam::rle_json(rle_of(map, segment.id));
      object["segments"].push_back(std::move(row));
    }
    return pipeline::json_line(object);
  }

  std::vector<Output> outputs() const override {
    if (task_ == LabelMapTask::semantic) return {{"labels", {}}};
    return {{"labels", {}}, {"ids", {}}};
  }

  Tensor array(const Item& item, size_t output) const override {
    const LabelMap& map = of(item);
    return Tensor::from<int32_t>({map.height, map.width}, output == 0 ? classes_of(map) : map.ids).to(DType::f32);
  }

  image::Image render(const Item& item) const override {
    const LabelMap& map = of(item);
    if (options_.colors == LabelColors::labels) return in_gray(map);
    if (options_.colors == LabelColors::panoptic) return in_panoptic(map);
    image::Image image = image::to_image(item.photo, image::ColorMode::rgb);
    for (size_t i = 0; i < map.ids.size(); ++i) {
      if (map.ids[i] == 0) continue;
      const image::PixelColor color = image::voc_color(map.ids[i]);
      for (size_t c = 0; c < 3; ++c) {
        uint8_t& value = image.pixels[3 * i + c];
        value = static_cast<uint8_t>(std::lround((1 - options_.opacity) * value + options_.opacity * color[c]));
      }
    }
    return options_.legend ? with_legend(image, map) : image;
  }

  std::vector<uint8_t> render_png(const Item& item) const override {
    if (options_.colors != LabelColors::labels || fits_8_bits()) return Request::render_png(item);
    image::Gray16 image{of(item).width, of(item).height, {}};
    for (const int32_t label : classes_of(of(item))) image.values.push_back(static_cast<uint16_t>(label));  // −1: 65535
    return image::encode_png(image);
  }

 private:
  static const LabelMap& of(const Item& item) { return std::any_cast<const LabelMap&>(item.value); }

  // 255 is for pixels without a class.
  bool fits_8_bits() const { return names_.size() <= 255; }

  std::string name(const LabelSegment& segment) const {
    const auto i = static_cast<size_t>(segment.index);
    return i < names_.size() ? names_[i] : std::to_string(i);
  }

  static image::Image in_gray(const LabelMap& map) {
    image::Image image = image::make_image(map.width, map.height, 1);
    std::ranges::transform(classes_of(map), image.pixels.begin(),
                           [](int32_t label) { return static_cast<uint8_t>(label); });  // −1: 255
    return image;
  }

  static image::Image in_panoptic(const LabelMap& map) {
    image::Image image = image::make_image(map.width, map.height, 3);
    for (size_t i = 0; i < map.ids.size(); ++i) {
      for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = static_cast<uint8_t>(map.ids[i] >> (8 * c));
    }
    return image;
  }

  // A line with a square of its colour for each segment, on white below the image.
  image::Image with_legend(const image::Image& image, const LabelMap& map) const {
    const int64_t scale = std::max<int64_t>(1, image.width / 400), line = image::line_height(scale) + 2 * scale;
    const auto lines = static_cast<int64_t>(map.segments.size());
    image::Image result = image::make_image(image.width, image.height + lines * line, 3);
    std::ranges::fill(result.pixels, uint8_t{255});
    std::ranges::copy(image.pixels, result.pixels.begin());
    int64_t top = image.height;
    for (const LabelSegment& segment : map.segments) {
      image::fill_rectangle({scale, top + scale, line - scale, top + line - scale}, image::voc_color(segment.id),
                            result);
      image::draw_text(name(segment), line + scale, top + scale, scale, result);
      top += line;
    }
    return result;
  }

  const LabelMapModel& model_;
  std::vector<std::string> names_;
  bool render_;
  LabelMapOptions options_;
  LabelMapTask task_ = LabelMapTask::semantic;
  LabelMapThresholds thresholds_;
};

}  // namespace

Task label_map_task() {
  return {.name = "segment",
          .model = "a semantic segmenter",
          .help = "Segment objects of prompts (Segment Anything), or all pixels by classes",
          .describe = describe_defaults<LabelMapOptions, describe_label_map>,
          .can_render = true,
          .model_options = false,
          .fits = is_model<LabelMapModel>,
          .request = [](const LoadedModel& model, RequestOptions& options,
                        const Setting& setting) -> std::unique_ptr<Request> {
            return std::make_unique<LabelMapRequest>(as_model<LabelMapModel>(model), options, setting);
          }};
}

}  // namespace vitrail::tasks
