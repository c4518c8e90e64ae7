# SPDX-License-Identifier: Apache-2.0
# The learning page.  Its scripts become one, in this order.
vitrail_embed_files(learning_page_files vitrail::explain vitrail/explain/page_files_internal.h explain/page
  page.html style.css en.json zh.json data.js text.js state.js elements.js draw.js image.js block.js depth.js
  prediction.js compare.js sam.js training.js modules.js main.js)
