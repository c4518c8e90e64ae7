// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/page.h"

#include "vitrail/base/error.h"
#include "vitrail/train/report/html_internal.h"
#include "vitrail/train/report/report_images_internal.h"

namespace vitrail::app {

std::string figure_of(const std::function<image::Image()>& read, const std::string& caption, const std::string& path) {
  std::string thumbnail;
  try {
    if (read)
      thumbnail = str("<img src=\"", train::data_uri(train::make_thumbnail(read())), "\" alt=\"",
                      train::escape_html(path), "\">");
  } catch (const Error&) {  // it is not here, or has changed
  }
  return str("<figure>", thumbnail, "<figcaption>", train::escape_html(caption), "<small>", train::escape_html(path),
             "</small></figcaption></figure>\n");
}

std::string page_end(const std::string& command_line) {
  return str("<table class=\"environment\">\n<tr><td>command</td><td>", train::escape_html(command_line),
             "</td></tr>\n<tr><td>version</td><td>vitrail " VITRAIL_VERSION "</td></tr>\n</table>\n", train::kPageEnd);
}

}  // namespace vitrail::app
