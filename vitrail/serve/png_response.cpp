// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/png_response_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/serve/request_images_internal.h"

namespace vitrail::serve {

HttpResponse png_response(const std::vector<uint8_t>& file) {
  return {.content_type = "image/png", .body = {file.begin(), file.end()}};
}

std::string result_format(Call& call, bool single, const std::vector<ResultFile>& files) {
  const auto file = [&](const std::string& name) { return std::ranges::find(files, name, &ResultFile::name); };
  const bool accepts_png = file("png") != files.end() && media_type(call.request().header("accept")) == "image/png";
  std::string format = call.options().text("format").value_or(accepts_png ? "png" : "json");
  if (format == "json") return format;
  if (file(format) == files.end())
    throw Error("format", "one of json, " + join(files, ", ", &ResultFile::name), "'" + format + "'");
  if (!single && !file(format)->joint) throw Error("format", "json for several images", format);
  return format;
}

}  // namespace vitrail::serve
