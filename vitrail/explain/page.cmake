# SPDX-License-Identifier: Apache-2.0
# The learning page.  Its scripts become one, in this order.
vitrail_embed_files(learning_page_files vitrail::explain vitrail/explain/page_files_internal.h explain/page
  page.html style.css main.js en.json zh.json)
