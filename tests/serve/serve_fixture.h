// SPDX-License-Identifier: Apache-2.0
#pragma once
// A server of two small models on a free loopback port, and images for it.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_client.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/base64_internal.h"
#include "vitrail/base/random.h"
#include "vitrail/image/encode.h"
#include "vitrail/pipeline/dual_model.h"
#include "vitrail/serve/server.h"

namespace vitrail::testing {

using nlohmann::json;

inline std::string small_model() { return fixture("models/timm_token").string(); }  // 32×32, 10 classes
inline std::string clip_model() { return fixture("models/hf_clip").string(); }

inline serve::ServeOptions serve_options() {
  return {.models = {{"small", small_model()}, {"clip", clip_model()}}, .port = 0};
}

// Copies the models' folders, so that a test may change their files.
inline serve::ServeOptions with_copied_models(serve::ServeOptions options = serve_options()) {
  const std::filesystem::path folder = scratch_folder();
  for (serve::ModelSource& source : options.models) {
    const std::filesystem::path model(source.path), copy = folder / source.name;
    std::filesystem::copy(is_directory(model) ? model : model.parent_path(), copy);
    source.path = (is_directory(model) ? copy : copy / model.filename()).string();
  }
  return options;
}

// The file with the weights of a model, and a change of it that leaves the weights as they were.
inline std::filesystem::path weights_of(const serve::ModelSource& source) {
  const std::filesystem::path path(source.path);
  return is_directory(path) ? path / "model.safetensors" : path;
}
inline void change_weights(const serve::ModelSource& source) {
  std::ofstream(weights_of(source), std::ios::app) << " and more";
}

class TestServer : public serve::Server {
 public:
  explicit TestServer(serve::ServeOptions options = serve_options()) : Server(std::move(options)) { load(); }

  HttpReply post(const std::string& target, std::string_view body, const std::string& headers = "") const {
    return http(port(), "POST", target, body, headers);
  }
  HttpReply get(const std::string& target) const { return http(port(), "GET", target); }
  // The sum over the models of a line of the metrics; 0 without it.
  double metric(const std::string& name) const {
    std::string text = "\n" + get("/metrics").body;
    for (const auto& [label, replacement] :
         {std::pair{",model=\"[^\"]*\"", ""}, {"\\{model=\"[^\"]*\"\\}", ""}, {"\\{model=\"[^\"]*\",", "{"}})
      text = std::regex_replace(text, std::regex(label), replacement);
    double sum = 0;
    for (size_t at = 0; (at = text.find("\n" + name + " ", at)) != text.npos; ++at)
      sum += std::stod(text.substr(at + name.size() + 2));
    return sum;
  }
};

// Waits until a condition holds, which it must; for a minute, so that a slow machine fails no test.
template <class Condition>
void wait_until(Condition condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << "the condition does not hold";
}

inline image::Image noise_image(uint64_t seed, int64_t width = 40, int64_t height = 36) {
  image::Image noise = image::make_image(width, height, 3);
  RandomStream random(random_key("noise", seed));
  for (uint8_t& value : noise.pixels) value = static_cast<uint8_t>(random.bits() >> 24);
  return noise;
}

inline std::string png_of(const image::Image& image) {
  const std::vector<uint8_t> bytes = image::encode_png(image);
  return {bytes.begin(), bytes.end()};
}

inline std::string base64(const std::string& bytes) { return to_base64(std::as_bytes(std::span(bytes))); }
inline std::string data_uri(const std::string& png) { return "data:image/png;base64," + base64(png); }

inline std::vector<float> floats(const Tensor& tensor) {
  const Tensor values = tensor.contiguous();
  return {values.data<float>(), values.data<float>() + values.numel()};
}

// A form with these files as images.
struct Form {
  std::string body, headers = "Content-Type: multipart/form-data; boundary=edge\r\n";

  explicit Form(const std::vector<std::string>& files, const std::map<std::string, std::string>& fields = {}) {
    for (const auto& [name, value] : fields)
      body += "--edge\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
    for (size_t i = 0; i < files.size(); ++i) {
      body += "--edge\r\nContent-Disposition: form-data; name=\"image\"; filename=\"" + std::to_string(i) +
              ".png\"\r\nContent-Type: image/png\r\n\r\n" + files[i] + "\r\n";
    }
    body += "--edge--\r\n";
  }
};

const std::string kJson = "Content-Type: application/json\r\n";

}  // namespace vitrail::testing
