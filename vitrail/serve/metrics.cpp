// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/metrics_internal.h"

#include <algorithm>
#include <charconv>

#include "vitrail/base/error.h"

namespace vitrail::serve {
namespace {

// From the fastest pass of a small model to the time limit of a request.
const std::vector<double> kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
const std::vector<double> kBatches{1, 2, 4, 8, 16, 32, 64, 128, 256};

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

void begin(const std::string& name, const char* type, const std::string& help, std::string& text) {
  text += str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

std::string metric_labels(std::initializer_list<std::pair<const char*, std::string_view>> labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;
    text += str(text.empty() ? "" : ",", name, "=\"");
    for (const char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      text += c == '\n' ? "\\n" : std::string(1, c);
    }
    text += '"';
  }
  return text;
}

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Histogram::write(const std::string& name, const std::string& labels, std::string& text) const {
  const std::string before = labels.empty() ? "" : labels + ",", alone = labels.empty() ? "" : "{" + labels + "}";
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    text += str(name, "_bucket{", before, "le=\"", bound, "\"} ", count, "\n");
  }
  text += name + "_sum" + alone + " " + number(sum_) + "\n" + str(name, "_count", alone, " ", count, "\n");
}

Metrics::OfModel::OfModel() : decode(kSeconds), queue(kSeconds), pass(kSeconds), batch(kBatches) {}

void Metrics::count_request(const std::string& route, int status, double seconds, const std::string& model) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status, model}];
  seconds_.try_emplace({route, model}, kSeconds).first->second.add(seconds);
}

void Metrics::count_departed(const std::string& route, const std::string& model) {
  const std::lock_guard lock(mutex_);
  ++departed_[{route, model}];
}

void Metrics::count_image(const std::string& model, bool succeeded) {
  const std::lock_guard lock(mutex_);
  OfModel& counts = models_[model];
  ++(succeeded ? counts.images : counts.failed_images);
}

void Metrics::count_embedding(const std::string& model, bool known) {
  const std::lock_guard lock(mutex_);
  OfModel& counts = models_[model];
  ++(known ? counts.known_embeddings : counts.new_embeddings);
}

void Metrics::add_decode(const std::string& model, double seconds) {
  const std::lock_guard lock(mutex_);
  models_[model].decode.add(seconds);
}

void Metrics::add_queue(const std::string& model, double seconds) {
  const std::lock_guard lock(mutex_);
  models_[model].queue.add(seconds);
}

void Metrics::add_batch(const std::string& model, size_t images, double model_seconds) {
  const std::lock_guard lock(mutex_);
  models_[model].batch.add(static_cast<double>(images));
  models_[model].pass.add(model_seconds);
}

void Metrics::write(const std::string& name, const char* help, Histogram OfModel::*histogram, std::string& text) const {
  begin(name, "histogram", help, text);
  for (const auto& [model, values] : models_) (values.*histogram).write(name, metric_labels({{"model", model}}), text);
}

void Metrics::write(const std::string& name, const char* help,
                    std::initializer_list<std::pair<const char*, uint64_t OfModel::*>> results,
                    std::string& text) const {
  begin(name, "counter", help, text);
  for (const auto& [model, values] : models_) {
    for (const auto& [result, count] : results)
      text += str(name, "{", metric_labels({{"result", result}, {"model", model}}), "} ", values.*count, "\n");
  }
}

std::string Metrics::text(const std::vector<Gauge>& gauges) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  begin("vitrail_requests_total", "counter", "Responses by route, status and model.", text);
  for (const auto& [key, count] : requests_) {
    const auto& [route, status, model] = key;
    const std::string labels = metric_labels({{"route", route}, {"status", std::to_string(status)}, {"model", model}});
    text += str("vitrail_requests_total{", labels, "} ", count, "\n");
  }
  begin("vitrail_departed_requests_total", "counter", "Requests whose client left before the response.", text);
  for (const auto& [key, count] : departed_) {
    const std::string labels = metric_labels({{"route", key.first}, {"model", key.second}});
    text += str("vitrail_departed_requests_total{", labels, "} ", count, "\n");
  }
  write("vitrail_images_total", "Images by result.",
        {{"success", &OfModel::images}, {"error", &OfModel::failed_images}}, text);
  write("vitrail_embedding_cache_total", "Image embeddings for /v1/segment that were known or computed.",
        {{"hit", &OfModel::known_embeddings}, {"miss", &OfModel::new_embeddings}}, text);
  begin("vitrail_request_duration_seconds", "histogram", "From the arrival of a request to its response.", text);
  for (const auto& [key, histogram] : seconds_) {
    histogram.write("vitrail_request_duration_seconds", metric_labels({{"route", key.first}, {"model", key.second}}),
                    text);
  }
  write("vitrail_decode_duration_seconds", "Decoding and preprocessing of an image.", &OfModel::decode, text);
  write("vitrail_queue_duration_seconds", "Wait of an image for its batch.", &OfModel::queue, text);
  write("vitrail_model_duration_seconds", "Forward pass of a batch.", &OfModel::pass, text);
  write("vitrail_batch_images", "Images of a batch.", &OfModel::batch, text);
  std::string last;
  for (const Gauge& gauge : gauges) {
    if (gauge.name != last) begin(gauge.name, gauge.type, gauge.help, text);
    last = gauge.name;
    text += gauge.name + (gauge.labels.empty() ? "" : "{" + gauge.labels + "}") + " " + number(gauge.value) + "\n";
  }
  return text;
}

}  // namespace vitrail::serve
