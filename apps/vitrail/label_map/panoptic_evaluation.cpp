// SPDX-License-Identifier: Apache-2.0
// Panoptic quality on sets in COCO's layout.
#include <algorithm>
#include <cmath>
#include <map>

#include "apps/vitrail/label_map/label_map_runs.h"
#include "apps/vitrail/output/output.h"
#include "vitrail/analysis/panoptic_quality.h"
#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/panoptic_set.h"

namespace vitrail::app {
namespace {

using analysis::PanopticQuality;
using analysis::PanopticSegment;

// The category of each class of the model: that of its name.
std::vector<int64_t> categories_of_classes(const std::vector<std::string>& names, const data::PanopticSet& set,
                                           const std::string& where) {
  std::vector<int64_t> categories;
  std::vector<std::string> unknown;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(set.categories, name, &data::PanopticSet::Category::name);
    if (found == set.categories.end()) unknown.push_back("\"" + escaped(name) + "\"");
    categories.push_back(found - set.categories.begin());
  }
  if (!unknown.empty() || names.empty()) {
    const auto count = static_cast<int64_t>(unknown.size());
    unknown.resize(static_cast<size_t>(std::min<int64_t>(count, 3)));
    throw Error(where, "categories with the names of the model's classes",
                names.empty() ? "a model without names" : str("none for ", count, ": ", join(unknown)));
  }
  return categories;
}

// The predicted segments.  Those of a category of stuff are one, as COCO's rules want.
class PredictedSegments {
 public:
  PredictedSegments(const tasks::LabelMap& map, const std::vector<int64_t>& category_of, const data::PanopticSet& set)
      : ids_(map.ids) {
    std::map<int64_t, int32_t> stuff;
    std::map<int32_t, int32_t> merged;
    for (const tasks::LabelSegment& segment : map.segments) {
      const int64_t category = category_of.at(static_cast<size_t>(segment.index));
      const bool thing = set.categories[static_cast<size_t>(category)].thing;
      if (const auto [first, is_new] = stuff.emplace(category, segment.id); !thing && !is_new) {
        merged[segment.id] = first->second;
      } else {
        segments_.push_back({segment.id, category});
      }
    }
    if (merged.empty()) return;
    for (int32_t& id : ids_) {
      if (const auto found = merged.find(id); found != merged.end()) id = found->second;
    }
  }
  analysis::PanopticMap map() const { return {ids_, segments_}; }

 private:
  std::vector<int32_t> ids_;
  std::vector<PanopticSegment> segments_;
};

nlohmann::ordered_json score_json(const PanopticQuality::Score& score) {
  if (std::isnan(score.pq)) return {{"pq", nullptr}, {"sq", nullptr}, {"rq", nullptr}};
  return {{"pq", score.pq}, {"sq", score.sq}, {"rq", score.rq}};
}

void print_quality(const PanopticQuality& quality, const data::PanopticSet& set, size_t images, size_t failures,
                   bool json) {
  std::vector<int64_t> all, things, stuff;
  for (size_t i = 0; i < set.categories.size(); ++i) {
    all.push_back(static_cast<int64_t>(i));
    (set.categories[i].thing ? things : stuff).push_back(static_cast<int64_t>(i));
  }
  nlohmann::ordered_json report{{"images", images}};
  if (failures > 0) report["unreadable"] = failures;
  for (const auto& [name, categories] : {std::pair{"all", &all}, {"things", &things}, {"stuff", &stuff}}) {
    const PanopticQuality::Score score = quality.mean(*categories);
    report[name] = score_json(score);
    report[name]["categories"] = score.categories;
  }
  if (!json) {
    for (const auto& [name, value] : report.items()) {
      if (!value.is_object()) {
        print_output("{:10s} {}\n", name, value.dump());
      } else {
        print_output("{:10s} PQ {}  SQ {}  RQ {}  categories {}\n", name, value["pq"].dump(), value["sq"].dump(),
                     value["rq"].dump(), value["categories"].dump());
      }
    }
  }
  auto& classes = report["classes"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < set.categories.size(); ++i) {
    const auto& [name, thing] = set.categories[i];
    const PanopticQuality::Score score = quality.of(static_cast<int64_t>(i));
    if (json) {
      nlohmann::ordered_json row{{"label", name}, {"thing", thing}};
      row.update(score_json(score));
      classes.push_back(std::move(row));
    } else if (!std::isnan(score.pq)) {
      print_output("PQ {:.4f}  SQ {:.4f}  RQ {:.4f}  {}\n", score.pq, score.sq, score.rq, escaped(name));
    }
  }
  if (json) print_json(report);
}

}  // namespace

int evaluate_panoptic_set(const NamedModel& named, const EvalCommandOptions& options, const GlobalOptions& global) {
  const data::PanopticSet set = data::open_panoptic_set(options.dataset, wanted_splits(options));
  const auto opened = tasks::open_model(*named.files, {.model = session_options_of(options.model, global)});
  const tasks::LabelMapModel& model = tasks::as_model<tasks::LabelMapModel>(*opened);
  const std::vector<tasks::LabelMapTask> known = model.label_map_tasks();
  if (std::ranges::find(known, tasks::LabelMapTask::panoptic) == known.end())
    throw Error(named.name, "a model for panoptic maps, on a set with annotations/panoptic_*.json",
                "one for " + join(known, " and ", tasks::name_of) + " maps");
  const std::vector<int64_t> category_of = categories_of_classes(model.class_names(), set, options.dataset);
  std::vector<std::string> paths;
  for (const data::PanopticSet::Sample& sample : set.samples) paths.push_back(sample.image);
  PanopticQuality quality(static_cast<int64_t>(set.categories.size()));
  const size_t failures = run_label_maps(
      model, tasks::LabelMapTask::panoptic, paths, options, global, [&](size_t index, const tasks::LabelMap& map) {
        const data::PanopticSet::Sample& sample = set.samples[index];
        const std::vector<int32_t> ids = data::read_panoptic_ids(sample.map, map.width, map.height);
        std::vector<PanopticSegment> segments;
        for (const auto& [id, category, crowd] : sample.segments) segments.push_back({id, category, crowd});
        const PredictedSegments predicted(map, category_of, set);
        quality.add({ids, segments}, predicted.map(), sample.map);
      });
  print_quality(quality, set, paths.size() - failures, failures, options.format == "json");
  return failures == 0 ? 0 : 1;
}

}  // namespace vitrail::app
