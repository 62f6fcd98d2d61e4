// Whether the browser tells of long answers: a choice of this browser, and the browser's permission.

const STORAGE_KEY = "notifications";

export function areNotificationsOn() {
  try {
    return (
      localStorage.getItem(STORAGE_KEY) === "on" &&
      globalThis.Notification?.permission === "granted"
    );
  } catch {
    return false; // storage is forbidden
  }
}

// Ask for the permission, which a browser allows after a click only. Return whether they are on.
async function turnOn() {
  if ((await globalThis.Notification?.requestPermission()) !== "granted") return false;
  localStorage.setItem(STORAGE_KEY, "on");
  return true;
}

// Tell of something, and come back to this page by a click.
export async function notify(title, body, tag) {
  const icon = document.querySelector("link[rel=apple-touch-icon]").href;
  const options = { body, tag, icon, data: location.href };
  try {
    const notification = new Notification(title, options);
    notification.addEventListener("click", () => {
      window.focus();
      notification.close();
    });
  } catch {
    // Browsers of phones show only those of a service worker, which handles the click too.
    const registration = await navigator.serviceWorker?.getRegistration();
    await registration?.showNotification(title, options);
  }
}

const box = document.querySelector("[data-notifications]");
if (box) {
  const refusal = document.getElementById(box.getAttribute("aria-describedby"));
  box.checked = areNotificationsOn();
  box.addEventListener("change", async () => {
    refusal.hidden = true;
    if (!box.checked) return localStorage.removeItem(STORAGE_KEY);
    box.checked = await turnOn().catch(() => false);
    refusal.hidden = box.checked;
  });
}
