// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/models/label_file_internal.h"
#include "vitrail/pipeline/prediction_json_internal.h"

namespace vitrail::pipeline {
namespace {

using nlohmann::ordered_json;

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

ordered_json prediction_json(const std::string& path, const std::string& activation,
                             const std::vector<Prediction>& predictions) {
  ordered_json list = ordered_json::array();
  for (const Prediction& p : predictions)
    list.push_back({{"index", p.index}, {"label", p.label}, {"probability", p.probability}});
  return {{"path", path}, {"activation", activation}, {"predictions", list}};
}

ordered_json failure_json(const std::string& path, const std::string& message) {
  return {{"path", path}, {"error", message}};
}

std::string json_line(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::vector<Prediction> best_labels(const Tensor& probabilities, const std::vector<std::string>& labels, int64_t top) {
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < labels.size(); ++i)
    predictions.push_back({static_cast<int64_t>(i), labels[i], probabilities.data<float>()[i]});
  std::ranges::stable_sort(predictions, std::greater<>(), &Prediction::probability);
  predictions.resize(std::min(predictions.size(), static_cast<size_t>(top)));
  return predictions;
}

std::vector<std::string> split_labels(const std::string& labels) {
  const std::string text = trimmed(labels);
  if ((text.starts_with('[') && text.ends_with(']')) || (text.starts_with('{') && text.ends_with('}')))
    return models::parse_labels(text, "labels", 0);
  std::vector<std::string> names;
  for (size_t at = 0; at <= labels.size();) {
    const size_t comma = std::min(labels.find(',', at), labels.size());
    names.push_back(trimmed(labels.substr(at, comma - at)));
    if (names.back().empty()) throw Error("labels", "names with commas between them", "\"" + labels + "\"");
    at = comma + 1;
  }
  return names;
}

}  // namespace vitrail::pipeline
