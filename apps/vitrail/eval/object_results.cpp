// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/eval/object_results.h"

#include <algorithm>
#include <map>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/annotation_json_internal.h"

namespace vitrail::app {
namespace {

class ResultsReader {
 public:
  explicit ResultsReader(const data::ObjectSet& set) : set_(set) {
    if (set.form != "COCO") throw Error(set.where, "a set in COCO's form, which has the ids of results", set.form);
    for (size_t i = 0; i < set.images.size(); ++i) positions_.emplace(set.images[i].id, i);
    for (size_t i = 0; i < set.category_ids.size(); ++i) categories_.emplace(set.category_ids[i], i);
  }

  size_t image_of(const data::AnnotationObject& result) const {
    const auto image = positions_.find(result.integer("image_id"));
    if (image == positions_.end()) result.fail("image_id", "the id of an image of " + set_.where);
    return image->second;
  }

  FoundObject read(const data::AnnotationObject& result, const ObjectKinds& kinds, size_t image) const {
    const auto category = categories_.find(result.integer("category_id"));
    if (category == categories_.end()) result.fail("category_id", "the id of a category of " + set_.where);
    FoundObject object{.category = static_cast<int64_t>(category->second)};
    if (!result.at("score").is_number()) result.fail("score", "a number");
    object.score = result.at("score").get<double>();
    if (kinds.boxes) {
      const std::vector<double> box = result.numbers("bbox");
      if (box.size() != 4) result.fail("bbox", "[x, y, width, height]");
      object.box = {box[0], box[1], box[0] + box[2], box[1] + box[3]};
    }
    if (kinds.masks) object.mask = mask_of(result, set_.images[image]);
    if (kinds.keypoints) object.keypoints = result.numbers("keypoints");
    return object;
  }

 private:
  static sam::Rle mask_of(const data::AnnotationObject& result, const data::LabelledImage& image) {
    const std::string where = result.where() + ": segmentation";
    const data::AnnotationObject runs(result.at("segmentation"), where);
    const nlohmann::json size = nlohmann::json::array({image.height, image.width});
    if (runs.at("size") != size) runs.fail("size", "the image's height and width " + size.dump());
    return sam::from_coco(runs.text("counts"), image.width, image.height, where);
  }

  const data::ObjectSet& set_;
  std::map<int64_t, size_t> positions_, categories_;
};

}  // namespace

ObjectResults read_object_results(const std::filesystem::path& path, const data::ObjectSet& set) {
  const ResultsReader reader(set);
  const nlohmann::json document = data::read_annotations(path);
  if (!document.is_array() || document.empty()) {
    throw Error(path.string(), "COCO's results, a list of {image_id, category_id, score, bbox}",
                document.is_array() ? "an empty list" : document.type_name());
  }
  ObjectResults results{.kinds = {}, .images = std::vector<std::vector<FoundObject>>(set.images.size())};
  const auto has = [&](const char* key) { return document.front().contains(key); };
  results.kinds = {.boxes = has("bbox"), .masks = has("segmentation"), .keypoints = has("keypoints")};
  if (!results.kinds.boxes && !results.kinds.masks && !results.kinds.keypoints)
    throw Error(path.string(), "results with bbox, segmentation or keypoints", "none of them");
  for (size_t i = 0; i < document.size(); ++i) {
    const data::AnnotationObject result(document[i], str(path.string(), ": [", i, "]"));
    const size_t image = reader.image_of(result);
    results.images[image].push_back(reader.read(result, results.kinds, image));
  }
  return results;
}

}  // namespace vitrail::app
