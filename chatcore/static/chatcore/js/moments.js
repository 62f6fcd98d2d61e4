// When something was said, where its reader is: the hour of today, else the day too; the whole of it for who points at it.

class LocalTime extends HTMLElement {
  static observedAttributes = ["datetime"];

  attributeChangedCallback() {
    const moment = new Date(this.getAttribute("datetime"));
    if (isNaN(moment)) return;
    const show = (format) =>
      new Intl.DateTimeFormat(document.documentElement.lang, format).format(moment);
    const now = new Date();
    const today = moment.toDateString() === now.toDateString();
    const year = moment.getFullYear() === now.getFullYear() ? undefined : "numeric";
    this.textContent = show(
      today
        ? { timeStyle: "short" }
        : { year, month: "short", day: "numeric", hour: "numeric", minute: "2-digit" },
    );
    this.title = show({ dateStyle: "full", timeStyle: "medium" });
  }
}

customElements.define("local-time", LocalTime);
