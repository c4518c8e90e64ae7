// A photograph from the camera.  Browsers lend it to pages of this machine and of HTTPS alone.
export const hasCamera = Boolean(navigator.mediaDevices?.getUserMedia);

async function frame(video) {
  const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
  canvas.getContext("2d").drawImage(video, 0, 0);
  const blob = await canvas.convertToBlob({type: "image/jpeg", quality: 0.95});
  return new File([blob], "photograph.jpg", {type: blob.type});
}

// Shows the camera's picture in the dialog.  The file, or null if the dialog was left without one.
export async function photograph(dialog) {
  const stream = await navigator.mediaDevices.getUserMedia({video: {width: {ideal: 1920}, facingMode: "environment"}});
  const video = dialog.querySelector("video");
  try {
    video.srcObject = stream;
    await video.play();
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener("close", resolve, {once: true}));
    return dialog.returnValue === "take" ? await frame(video) : null;
  } finally {
    for (const track of stream.getTracks()) track.stop();
    video.srcObject = null;
  }
}
