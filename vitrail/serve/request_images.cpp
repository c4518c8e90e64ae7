// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/request_images_internal.h"

#include <algorithm>
#include <cctype>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/image/decode.h"
#include "vitrail/serve/http_error.h"
#include "vitrail/serve/json_body_internal.h"
#include "vitrail/serve/multipart_internal.h"
#include "vitrail/tasks/item_files.h"

namespace vitrail::serve {
namespace {

constexpr std::string_view kMask = "mask";  // an option of /v1/segment that is a file
constexpr size_t kMaxFields = 64;           // the fields of a form beside its images

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void check_count(size_t count, const Limits& limits) {
  if (count > limits.images) throw HttpError(413, str("at most ", limits.images, " images in a request, got ", count));
  if (count == 0) throw HttpError(400, "no image in the request");
}

RequestImages from_form(const HttpRequest& request, const Limits& limits, RequestOptions& options) {
  RequestImages result;
  for (const Part& part : parse_multipart(request.body, request.header("content-type"), limits.images + kMaxFields)) {
    const bool is_option =
        part.name == kMask || tasks::is_item_file(part.name) || (part.filename.empty() && part.name != "image");
    if (is_option) {
      options.add(part.name, std::string(part.content));
      continue;
    }
    const std::string name = part.filename.empty() ? str("image ", result.images.size()) : part.filename;
    result.images.push_back({name, std::string(part.content)});
  }
  check_count(result.images.size(), limits);
  return result;
}

// {"images": ["data:…", …], options…} or {"image": "data:…", options…}
RequestImages from_json(const HttpRequest& request, const Limits& limits, RequestOptions& options,
                        const ParseBudget& budget) {
  const nlohmann::json body = parse_json(request.body, limits.json_depth, budget);
  RequestImages result;
  result.single = body.is_object() && body.contains("image");
  const std::string key = result.single ? "image" : "images";
  const nlohmann::json& given = member(body, key);
  const nlohmann::json one = result.single ? nlohmann::json::array({given}) : nlohmann::json();
  const nlohmann::json& list = result.single ? one : given;  // a copy of many images would take memory
  if (!list.is_array()) throw Error(key, "a list of data URIs", list.type_name());
  check_count(list.size(), limits);
  for (const nlohmann::json& uri : list) {
    const std::string name = result.single ? "-" : str("image ", result.images.size());
    result.images.push_back({name, image_bytes(uri, name)});
  }
  add_options(body, key, options);
  return result;
}

}  // namespace

std::string media_type(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find_first_of("; \t")));
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type;
}

bool decompress_body(HttpRequest& request, const Limits& limits) {
  const std::string encoding = media_type(request.header("content-encoding"));
  if (encoding.empty() || encoding == "identity") return false;
  if (encoding != "gzip" && encoding != "deflate")
    throw HttpError(415, "Content-Encoding: expected gzip, deflate or identity");
  try {
    const auto decompress = encoding == "gzip" ? gunzip : inflate_all;
    const std::vector<std::byte> body = decompress(bytes_of(request.body), limits.body_bytes, "body");
    request.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
    return true;
  } catch (const Error& error) {
    const bool too_large = error.parts() && error.parts()->expected.starts_with("at most");
    throw HttpError(too_large ? 413 : 400, error.what());
  }
}

RequestImages take_images(HttpRequest& request, const Limits& limits, RequestOptions& options,
                          const ParseBudget& budget) {
  const std::string type = media_type(request.header("content-type"));
  if (type == "multipart/form-data") return from_form(request, limits, options);
  if (type == "application/json") return from_json(request, limits, options, budget);
  if (request.body.empty()) throw HttpError(400, "an empty body: send an image, a form or JSON");
  const auto begin = bytes_of(std::string_view(request.body).substr(0, 16));
  // curl --data-binary says that it sends a form, whatever it sends.
  const bool is_image = type.starts_with("image/") || type.empty() || type == "application/octet-stream" ||
                        image::has_image_signature(begin);
  if (!is_image)
    throw HttpError(415, "Content-Type: expected an image, multipart/form-data or application/json, got " + type);
  RequestImages result{.single = true};
  result.images.push_back({"-", std::move(request.body)});
  return result;
}

}  // namespace vitrail::serve
