// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/model_statistics_internal.h"

#include <algorithm>
#include <chrono>

namespace vitrail::serve {

using nlohmann::ordered_json;

void ModelStatistics::Duration::add(double seconds) {
  ++count;
  ns += static_cast<uint64_t>(std::max(seconds, 0.0) * 1e9);
}

void ModelStatistics::add_request(const std::string& model, bool succeeded, const RequestTimes& times) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[model];
  entry.last_inference = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  if (!succeeded) return entry.fail.add(times.total);
  entry.success.add(times.total);
  entry.queue.add(times.queue);
  entry.input.add(times.decode);
  entry.infer.add(times.model);
  entry.output.add(times.output);
}

void ModelStatistics::add_batch(const std::string& model, size_t images, double seconds) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[model];
  entry.images += images;
  ++entry.batches;
  entry.by_batch[images].add(seconds);
}

ordered_json ModelStatistics::json(const std::string& model, const std::string& version) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(model);
  const Entry entry = found == entries_.end() ? Entry{} : found->second;
  const ordered_json none = Duration{}.json();
  ordered_json batches = ordered_json::array();
  for (const auto& [images, duration] : entry.by_batch) {
    batches.push_back({{"batch_size", images},
                       {"compute_input", none},
                       {"compute_infer", duration.json()},
                       {"compute_output", none}});
  }
  const ordered_json stages{{"success", entry.success.json()},
                            {"fail", entry.fail.json()},
                            {"queue", entry.queue.json()},
                            {"compute_input", entry.input.json()},
                            {"compute_infer", entry.infer.json()},
                            {"compute_output", entry.output.json()},
                            {"cache_hit", none},
                            {"cache_miss", none}};
  return {{"name", model},
          {"version", version},
          {"last_inference", entry.last_inference},
          {"inference_count", entry.images},
          {"execution_count", entry.batches},
          {"inference_stats", stages},
          {"response_stats", ordered_json::object()},
          {"batch_stats", batches},
          {"memory_usage", ordered_json::array()}};
}

}  // namespace vitrail::serve
