// SPDX-License-Identifier: Apache-2.0
#include "vitrail/serve/png_response_internal.h"

#include "vitrail/base/error.h"
#include "vitrail/serve/request_images_internal.h"

namespace vitrail::serve {

HttpResponse png_response(const std::vector<uint8_t>& file) {
  return {.content_type = "image/png", .body = {file.begin(), file.end()}};
}

bool wants_png(Call& call, bool single) {
  const std::string preset = media_type(call.request().header("accept")) == "image/png" ? "png" : "json";
  const std::string format = call.options().text("format").value_or(preset);
  if (format != "json" && format != "png") throw Error("format", "one of json, png", "'" + format + "'");
  if (format == "png" && !single) throw Error("format", "json for several images", "png");
  return format == "png";
}

}  // namespace vitrail::serve
