// The page of the settings.

import "./app.js";
import "../js/notifications.js";
