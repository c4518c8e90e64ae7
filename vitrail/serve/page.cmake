# SPDX-License-Identifier: Apache-2.0
# The page of the server, and the description of its routes.
vitrail_embed_files(page_files vitrail::serve vitrail/serve/page_files_internal.h serve/page
  index.html style.css main.js api.js camera.js views.js draw.js controls.js masks.js segment.js openapi.json)
