// Search without a server: a page that was opened from a file may not start a worker. Then a hidden frame stands in for
// it, which the theme's search asks for by this name. It answers messages one after the other, on the page's own thread.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => urls.reduce(
        (before, each) => before.then(() => load(inside.document, each)), Promise.resolve());
      load(inside.document, url);
    }

    postMessage(data) {
      const deliver = () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      loaded(this.frame).then(deliver);
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}

function load(document, url) {
  const script = document.createElement("script");
  script.src = new URL(url, location.href);
  const done = new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; });
  document.body.append(script);
  document.loading = Promise.all([document.loading, done]);
  return done;
}

function loaded(frame) {
  return frame.contentWindow.document.loading;
}
