// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/label_map/label_map_model.h"

#include <algorithm>
#include <map>

namespace vitrail::tasks {
namespace {

// The map alone, at the nominal size of the input, so that those of several images have one shape.
class LabelTensor : public Request {
 public:
  explicit LabelTensor(const LabelMapModel& model) : model_(model) {}

  void compute(Item& item, const ImageEncoding* encoding, const ProgressCallback& /*progress*/) const override {
    const auto [height, width] = model_.nominal_size();
    const LabelMap map = model_.label_map(*encoding, model_.label_map_tasks().front(), height, width, {});
    item.results = {{Tensor::from<int32_t>({height, width}, classes_of(map)).to(DType::f32)}};
  }
  std::vector<Output> outputs() const override {
    const auto [height, width] = model_.nominal_size();
    return {{"labels", {height, width}}};
  }
  Tensor array(const Item& item, size_t /*output*/) const override { return item.results[0][0]; }
  std::string json(const Item& item) const override { return failure_json(item.name, "a label map is an array"); }

 private:
  const LabelMapModel& model_;
};

}  // namespace

std::unique_ptr<Request> LabelMapModel::tensors() const { return std::make_unique<LabelTensor>(*this); }

void LabelMapModel::warm_up() const {
  const auto [height, width] = nominal_size();
  encode(image::make_image(width, height, 3));
}

LabelMap semantic_map(std::vector<int32_t> classes, int64_t height, int64_t width) {
  LabelMap map{width, height, std::move(classes)};
  const int32_t largest = map.ids.empty() ? -1 : std::ranges::max(map.ids);
  std::vector<bool> present(static_cast<size_t>(largest + 1));
  for (int32_t& id : map.ids) present[static_cast<size_t>(id++)] = true;
  for (int32_t i = 0; i <= largest; ++i) {
    if (present[static_cast<size_t>(i)]) map.segments.push_back({.id = i + 1, .index = i});
  }
  return map;
}

std::vector<int32_t> classes_of(const LabelMap& map) {
  std::map<int32_t, int32_t> index_of{{0, -1}};
  for (const LabelSegment& segment : map.segments) index_of[segment.id] = static_cast<int32_t>(segment.index);
  std::vector<int32_t> classes(map.ids.size());
  std::ranges::transform(map.ids, classes.begin(), [&, last = 0, found = -1](int32_t id) mutable {
    if (id != last) found = index_of.at(last = id);  // neighbours are mostly of one segment
    return found;
  });
  return classes;
}

const char* name_of(LabelMapTask task) {
  return task == LabelMapTask::semantic ? "semantic" : task == LabelMapTask::instance ? "instance" : "panoptic";
}

}  // namespace vitrail::tasks
