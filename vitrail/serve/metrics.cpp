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

// `,model="…"`, with what the format escapes; empty without a model.
std::string model_label(const std::string& model) {
  if (model.empty()) return "";
  std::string text = ",model=\"";
  for (const char c : model) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return text + "\"";
}

void begin(const char* name, const char* type, const char* help, std::string& text) {
  text += str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

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

Metrics::Metrics() : decode_(kSeconds), queue_(kSeconds), model_(kSeconds), batch_(kBatches) {}

void Metrics::count_request(const std::string& route, int status, double seconds, const std::string& model) {
  const std::lock_guard lock(mutex_);
  ++requests_[{route, status, model}];
  seconds_.try_emplace({route, model}, kSeconds).first->second.add(seconds);
}

void Metrics::count_departed(const std::string& route) {
  const std::lock_guard lock(mutex_);
  ++departed_[route];
}

void Metrics::count_image(bool succeeded) {
  const std::lock_guard lock(mutex_);
  ++(succeeded ? images_ : failed_images_);
}

void Metrics::count_embedding(bool known) {
  const std::lock_guard lock(mutex_);
  ++(known ? known_embeddings_ : new_embeddings_);
}

void Metrics::add_decode(double seconds) {
  const std::lock_guard lock(mutex_);
  decode_.add(seconds);
}

void Metrics::add_queue(double seconds) {
  const std::lock_guard lock(mutex_);
  queue_.add(seconds);
}

void Metrics::add_batch(size_t images, double model_seconds) {
  const std::lock_guard lock(mutex_);
  batch_.add(static_cast<double>(images));
  model_.add(model_seconds);
}

std::string Metrics::text(const std::vector<Gauge>& gauges) const {
  const std::lock_guard lock(mutex_);
  std::string text;
  begin("vitrail_requests_total", "counter", "Responses by route, status and model.", text);
  for (const auto& [key, count] : requests_) {
    const auto& [route, status, model] = key;
    text += str("vitrail_requests_total{route=\"", route, "\",status=\"", status, "\"", model_label(model), "} ", count,
                "\n");
  }
  begin("vitrail_departed_requests_total", "counter", "Requests whose client left before the response.", text);
  for (const auto& [route, count] : departed_)
    text += str("vitrail_departed_requests_total{route=\"", route, "\"} ", count, "\n");
  begin("vitrail_images_total", "counter", "Images by result.", text);
  text += str("vitrail_images_total{result=\"success\"} ", images_, "\nvitrail_images_total{result=\"error\"} ",
              failed_images_, "\n");
  begin("vitrail_embedding_cache_total", "counter", "Image embeddings for /v1/segment that were known or computed.",
        text);
  text += str("vitrail_embedding_cache_total{result=\"hit\"} ", known_embeddings_,
              "\nvitrail_embedding_cache_total{result=\"miss\"} ", new_embeddings_, "\n");
  begin("vitrail_request_duration_seconds", "histogram", "From the arrival of a request to its response.", text);
  for (const auto& [key, histogram] : seconds_) {
    const std::string labels = "route=\"" + key.first + "\"" + model_label(key.second);
    histogram.write("vitrail_request_duration_seconds", labels, text);
  }
  begin("vitrail_decode_duration_seconds", "histogram", "Decoding and preprocessing of an image.", text);
  decode_.write("vitrail_decode_duration_seconds", "", text);
  begin("vitrail_queue_duration_seconds", "histogram", "Wait of an image for its batch.", text);
  queue_.write("vitrail_queue_duration_seconds", "", text);
  begin("vitrail_model_duration_seconds", "histogram", "Forward pass of a batch.", text);
  model_.write("vitrail_model_duration_seconds", "", text);
  begin("vitrail_batch_images", "histogram", "Images of a batch.", text);
  batch_.write("vitrail_batch_images", "", text);
  for (const Gauge& gauge : gauges) {
    begin(gauge.name.c_str(), gauge.type, gauge.help.c_str(), text);
    text += gauge.name + (gauge.labels.empty() ? "" : "{" + gauge.labels + "}") + " " + number(gauge.value) + "\n";
  }
  return text;
}

}  // namespace vitrail::serve
