// SPDX-License-Identifier: Apache-2.0
#include "vitrail/explain/manifest_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/base64_internal.h"
#include "vitrail/base/digest_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/explain/html_internal.h"
#include "vitrail/image/encode.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::explain {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::pair<std::string, Detail>>& details() {
  static const std::vector<std::pair<std::string, Detail>> names{
      {"small", Detail::small}, {"standard", Detail::standard}, {"full", Detail::full}};
  return names;
}

std::string detail_name(Detail detail) {
  return std::ranges::find(details(), detail, &std::pair<std::string, Detail>::second)->first;
}

image::Image thumbnail_of(const image::Image& photo, int64_t side) {
  const double scale = static_cast<double>(side) / static_cast<double>(std::max(photo.width, photo.height));
  if (scale >= 1) return photo;
  const auto scaled = [&](int64_t extent) {
    return std::max<int64_t>(1, std::lround(static_cast<double>(extent) * scale));
  };
  return image::resize(photo, scaled(photo.width), scaled(photo.height), image::Filter::bicubic);
}

}  // namespace

void describe_explain(Fields& fields, ExplainOptions& options) {
  fields.text({"class", "Class, by name or index, that the page explains (default: the prediction)"}, options.target);
  fields.texts({"labels", "Names of the classes; of a model of images and texts: texts to compare the image with"},
               options.labels);
  fields.text({"compare", "A second Vision Transformer, which the page shows beside the model"}, options.compare);
  describe_page(fields, options);
}

void describe_page(Fields& fields, ExplainOptions& options) {
  fields.choice<Detail>({"detail", "Size of the page: at most 2 MB, at most 8 MB, or everything in 16 bits"},
                        options.detail, details());
  fields.choice({"lang", "Language of the page at its start"}, options.language, {"en", "zh"});
}

Json page_manifest(const ExplainOptions& options) {
  return {{"format", "vitrail-explain/1"},
          {"vitrail", VITRAIL_VERSION},
          {"language", options.language},
          {"detail", detail_name(options.detail)}};
}

Json image_json(const image::Image& photo, const std::string& name, int64_t thumbnail) {
  const std::vector<uint8_t> jpeg = image::encode_jpeg(thumbnail_of(photo, thumbnail));
  return {{"name", name},
          {"width", photo.width},
          {"height", photo.height},
          {"sha256", sha256(std::as_bytes(std::span(photo.pixels)))},
          {"thumbnail", "data:image/jpeg;base64," + to_base64(std::as_bytes(std::span(jpeg)))}};
}

void finish_page(const std::string& title, Json& manifest, const Json& claims, const Json& derived,
                 const Arrays& arrays, LearningPage& page) {
  Json rows = Json::array();
  for (const auto& [what, kept] : page.left_out) rows.push_back({{"what", what}, {"kept", kept}});
  manifest["claims"] = claims;
  manifest["left_out"] = rows;
  manifest["tensors"] = arrays.tensors();
  manifest["derived"] = derived;
  manifest["blobs"] = arrays.blobs();
  page.claims = claims.dump();
  page.html = page_html("vitrail: " + title, manifest, arrays);
}

}  // namespace vitrail::explain
