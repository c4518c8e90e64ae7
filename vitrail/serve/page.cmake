# SPDX-License-Identifier: Apache-2.0
# The page of the server, and the description of its routes.
vitrail_embed_files(page_files vitrail::serve vitrail/serve/page_files_internal.h serve/page
  index.html style.css theme.js main.js api.js images.js exif.js results.js camera.js samples.js elements.js draw.js
  stage.js gallery.js predictions.js classify.js texts.js chips.js attention.js features.js compare.js masks.js
  mask_files.js maps.js matte.js detect.js pose.js segment.js explain.js
  information.js cat.jpg coffee.jpg rocket.jpg openapi.json)
